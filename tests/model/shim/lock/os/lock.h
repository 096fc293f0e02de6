/* Takes the place of core/os/lock.h where the lock is not what is checked: two calls into the
 * model, which knows who holds a lock and sees misuse. That the true lock does what this one
 * promises is what the scenarios of lock.c check. */
#ifndef OS_LOCK_H
#define OS_LOCK_H

#include "base/atomic.h"
#include "base/macros.h"
#include "os/os.h"

#define LOCK_FORK ((uint32_t)1 << 30) /* held by the fork handlers */

struct lock {
    uint32_t word; /* the holder's id, 0 when open, and the bit */
};

/* As in the core: the thread has its id asked for again after fork. */
extern __thread uint32_t lock_thread_id;

ALWAYS_INLINE uint32_t lock_identify(void)
{
    return lock_thread_id = os_thread_id();
}

ALWAYS_INLINE uint32_t lock_self(void)
{
    return lock_thread_id ? lock_thread_id : lock_identify();
}

void lock_acquire(struct lock *lock);
void lock_release(struct lock *lock);
void lock_prepare_fork(struct lock *lock);
void lock_finish_fork(struct lock *lock);
void lock_adopt_in_child(struct lock *lock, uint32_t before);

#endif
