/* See lock.h. */
#include "os/lock.h"

#include "os/fatal.h"
#include "os/os.h"
#include "os/syscall.h"

__thread char lock_identity;

/* Critical sections are a few hundred instructions: worth a short wait before a system call. */
enum { SPIN_ROUNDS = 100 };

static bool lock_is_mine(const struct lock *lock)
{
    return ATOMIC_LOAD_RELAXED(&lock->owner) == LOCK_SELF;
}

static bool try_state(struct lock *lock, uint32_t from, uint32_t to)
{
    return __atomic_compare_exchange_n(
        &lock->state, &from, to, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

void lock_acquire_slow(struct lock *lock)
{
    if (lock_is_mine(lock)) {
        if (ATOMIC_LOAD_RELAXED(&lock->state) >= LOCK_HELD_FOR_FORK)
            return;
        fatal("malloc or free called by a signal handler that interrupted malloc or free");
    }
    for (int i = 0; i < SPIN_ROUNDS; i++) {
        if (ATOMIC_LOAD_RELAXED(&lock->state) == LOCK_OPEN && try_state(lock, LOCK_OPEN, LOCK_HELD))
            return;
        cpu_relax();
    }
    /* Who has waited takes the lock as contended: others may still sleep. */
    for (;;) {
        uint32_t state = ATOMIC_LOAD_RELAXED(&lock->state);
        if (state == LOCK_OPEN) {
            if (try_state(lock, LOCK_OPEN, LOCK_CONTENDED))
                return;
            continue;
        }
        uint32_t contended = state >= LOCK_HELD_FOR_FORK ? LOCK_CONTENDED_FOR_FORK : LOCK_CONTENDED;
        if (state == contended || try_state(lock, state, contended))
            os_futex_wait(&lock->state, contended);
    }
}

void lock_release(struct lock *lock)
{
    if (UNLIKELY(ATOMIC_LOAD_RELAXED(&lock->state) >= LOCK_HELD_FOR_FORK))
        return;
    ATOMIC_STORE_RELAXED(&lock->owner, 0);
    if (__atomic_exchange_n(&lock->state, LOCK_OPEN, __ATOMIC_RELEASE) == LOCK_CONTENDED)
        os_futex_wake(&lock->state);
}

void lock_prepare_fork(struct lock *lock)
{
    if (lock_is_mine(lock))
        return;
    lock_acquire(lock);
    if (__atomic_exchange_n(&lock->state, LOCK_HELD_FOR_FORK, __ATOMIC_RELAXED) == LOCK_CONTENDED)
        ATOMIC_STORE_RELAXED(&lock->state, LOCK_CONTENDED_FOR_FORK);
}

void lock_finish_fork(struct lock *lock)
{
    if (ATOMIC_LOAD_RELAXED(&lock->state) < LOCK_HELD_FOR_FORK || !lock_is_mine(lock))
        return;
    ATOMIC_STORE_RELAXED(&lock->owner, 0);
    if (__atomic_exchange_n(&lock->state, LOCK_OPEN, __ATOMIC_RELEASE) == LOCK_CONTENDED_FOR_FORK)
        os_futex_wake(&lock->state);
}
