/* The lock of the cold paths: a futex word and the identity of its holder.
 *
 * Invariant: no thread ever holds two of these locks, so their order cannot matter and a holder
 * always makes progress. The one exception is fork, whose handlers hold all of them at once
 * (thread/fork.c). There, and only there, the forking thread may enter a lock it already holds:
 * the fork handlers of other libraries may allocate in between.
 *
 * A zero-filled lock is an open lock.
 */
#ifndef OS_LOCK_H
#define OS_LOCK_H

#include "base/atomic.h"
#include "base/macros.h"

enum lock_state {
    LOCK_OPEN,
    LOCK_HELD,
    LOCK_CONTENDED, /* held, and somebody may sleep */
    LOCK_HELD_FOR_FORK,
    LOCK_CONTENDED_FOR_FORK
};

struct lock {
    uint32_t state;  /* atomic, any thread: acquire on entry pairs with release on exit */
    uintptr_t owner; /* atomic relaxed: written by the holder, compared by a thread with itself */
};

/* A value that no other running thread has. */
extern __thread char lock_identity;

#define LOCK_SELF ((uintptr_t)&lock_identity)

SLOW_PATH void lock_acquire_slow(struct lock *lock);

ALWAYS_INLINE void lock_acquire(struct lock *lock)
{
    uint32_t open = LOCK_OPEN;
    if (UNLIKELY(!__atomic_compare_exchange_n(
            &lock->state, &open, LOCK_HELD, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)))
        lock_acquire_slow(lock);
    ATOMIC_STORE_RELAXED(&lock->owner, LOCK_SELF);
}

void lock_release(struct lock *lock);

/* For the fork handlers. Prepare takes the lock unless this thread was interrupted inside it by
 * the signal handler that now forks: then the lock stays as it is, in the parent and the child,
 * until the interrupted code leaves it. */
void lock_prepare_fork(struct lock *lock);
void lock_finish_fork(struct lock *lock);

#endif
