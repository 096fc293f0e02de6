/* The lock of the cold paths: one futex word, with the id of its holder.
 *
 * Invariant: no thread ever holds two of these locks, so their order cannot matter and a holder
 * always makes progress. A thread in the middle of a call may hold one across fork: in the child
 * such locks are lost, and opened before any thread there can take one (thread/fork.c).
 *
 * Word: the holder's thread id, 0 when open, and a bit. Holder and state change in one atomic step,
 * so that a signal handler that interrupts the holder always recognises it.
 *
 * A zero-filled lock is an open lock.
 */
#ifndef OS_LOCK_H
#define OS_LOCK_H

#include "base/atomic.h"
#include "base/macros.h"
#include "os/identity.h"
#include "os/lock_profile.h"

#define LOCK_WAITERS ((uint32_t)1 << 31) /* a thread may sleep */
#define LOCK_HOLDER (LOCK_WAITERS - 1)

struct lock {
    uint32_t word; /* atomic, any thread: acquire on entry pairs with release on exit */
    struct lock_profile profile[HAKMEM_MEASURING]; /* else nothing */
};

void lock_acquire(struct lock *lock);

void lock_release(struct lock *lock);

/* Whether the calling thread holds it, interrupted by a signal handler. */
ALWAYS_INLINE bool lock_is_mine(const struct lock *lock)
{
    return (ATOMIC_LOAD_RELAXED(&lock->word) & LOCK_HOLDER) == identity_thread(identity_self());
}

/* In a new process, for identity_start's `repair`. A lock is lost if a thread held it that does
 * not exist here; `before` is the id that the calling thread had. The structure that it guards may
 * then be half changed, and has to be repaired before the lock is inherited: that opens it. But a
 * signal handler may have forked inside the lock: then it stays held, by the thread's new id `now`.
 */
bool lock_is_lost(const struct lock *lock, uint32_t before);
void lock_inherit(struct lock *lock, uint32_t before, uint32_t now);

#endif
