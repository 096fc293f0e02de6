/* Takes the place of core/os/lock.h where the lock is not what is checked: two calls into the
 * model, which knows who holds a lock and sees misuse. That the true lock does what this one
 * promises is what the scenarios of lock.c check. */
#ifndef OS_LOCK_H
#define OS_LOCK_H

#include "base/atomic.h"
#include "base/macros.h"
#include "os/identity.h"

struct lock {
    uint32_t word; /* the holder's id, 0 when open */
};

void lock_acquire(struct lock *lock);
void lock_release(struct lock *lock);

ALWAYS_INLINE bool lock_is_mine(const struct lock *lock)
{
    return ATOMIC_LOAD_RELAXED(&lock->word) == identity_thread(identity_self());
}

bool lock_is_lost(const struct lock *lock, uint32_t before);
void lock_inherit(struct lock *lock, uint32_t before, uint32_t now);

#endif
