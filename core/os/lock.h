/* The lock of the cold paths: one futex word that says who holds it.
 *
 * Invariant: no thread ever holds two of these locks, so their order cannot matter and a holder
 * always makes progress. The one exception is fork, whose handlers hold all of them at once
 * (thread/fork.c). There, and only there, the forking thread may enter a lock it already holds:
 * the fork handlers of other libraries may allocate in between.
 *
 * Word: the holder's thread id, 0 when open, and two bits. Holder and state change in one atomic
 * step, so that a signal handler that interrupts the holder always recognises it.
 *
 * A zero-filled lock is an open lock.
 */
#ifndef OS_LOCK_H
#define OS_LOCK_H

#include "base/atomic.h"
#include "base/macros.h"

#define LOCK_WAITERS ((uint32_t)1 << 31) /* somebody may sleep */
#define LOCK_FORK ((uint32_t)1 << 30)    /* held by the fork handlers */
#define LOCK_HOLDER (LOCK_FORK - 1)

struct lock {
    uint32_t word; /* atomic, any thread: acquire on entry pairs with release on exit */
};

/* The calling thread's id, 0 before its first use: see lock_self. */
extern __thread uint32_t lock_thread_id __attribute__((tls_model("initial-exec")));

/* Asks the system for the thread's id. */
SLOW_PATH uint32_t lock_identify(void);

/* The calling thread's id: no other running thread has it. */
ALWAYS_INLINE uint32_t lock_self(void)
{
    return LIKELY(lock_thread_id != 0) ? lock_thread_id : lock_identify();
}

SLOW_PATH void lock_acquire_slow(struct lock *lock);

ALWAYS_INLINE void lock_acquire(struct lock *lock)
{
    uint32_t open = 0;
    if (UNLIKELY(!__atomic_compare_exchange_n(
            &lock->word, &open, lock_self(), false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)))
        lock_acquire_slow(lock);
}

void lock_release(struct lock *lock);

/* For the fork handlers. Prepare takes the lock unless this thread was interrupted inside it by
 * the signal handler that now forks: then the lock stays as it is, in the parent and the child,
 * until the interrupted code leaves it. Finish opens what prepare took. The child's only thread has
 * a new id: adopt opens or renames the lock that its old id, `before`, holds. */
void lock_prepare_fork(struct lock *lock);
void lock_finish_fork(struct lock *lock);
void lock_adopt_in_child(struct lock *lock, uint32_t before);

#endif
