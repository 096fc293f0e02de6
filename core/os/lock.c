/* See lock.h. */
#include "os/lock.h"

#include "os/fatal.h"
#include "os/os.h"
#include "os/syscall.h"

__thread uint32_t lock_thread_id;

/* Most critical sections are a few hundred instructions: worth a short wait before a system call.
 */
enum { SPIN_ROUNDS = 100 };

uint32_t lock_identify(void)
{
    return lock_thread_id = os_thread_id();
}

static bool try_word(struct lock *lock, uint32_t from, uint32_t to)
{
    return __atomic_compare_exchange_n(
        &lock->word, &from, to, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

void lock_acquire_slow(struct lock *lock)
{
    uint32_t self = lock_self(), word = ATOMIC_LOAD_RELAXED(&lock->word);
    if ((word & LOCK_HOLDER) == self) {
        if (word & LOCK_FORK)
            return;
        fatal("malloc or free called by a signal handler that interrupted malloc or free");
    }
    for (int i = 0; i < SPIN_ROUNDS; i++) {
        if (ATOMIC_LOAD_RELAXED(&lock->word) == 0 && try_word(lock, 0, self))
            return;
        cpu_relax();
    }
    /* Who has waited takes the lock with the waiters' bit: others may still sleep. */
    for (;;) {
        word = ATOMIC_LOAD_RELAXED(&lock->word);
        if (word == 0) {
            if (try_word(lock, 0, self | LOCK_WAITERS))
                return;
            continue;
        }
        if (word & LOCK_WAITERS || try_word(lock, word, word | LOCK_WAITERS))
            os_futex_wait(&lock->word, word | LOCK_WAITERS);
    }
}

static void open_lock(struct lock *lock)
{
    if (__atomic_exchange_n(&lock->word, 0, __ATOMIC_RELEASE) & LOCK_WAITERS)
        os_futex_wake(&lock->word);
}

void lock_release(struct lock *lock)
{
    if (LIKELY((ATOMIC_LOAD_RELAXED(&lock->word) & LOCK_FORK) == 0))
        open_lock(lock);
}

static bool held_by(const struct lock *lock, uint32_t holder)
{
    return (ATOMIC_LOAD_RELAXED(&lock->word) & LOCK_HOLDER) == holder;
}

void lock_prepare_fork(struct lock *lock)
{
    if (held_by(lock, lock_self()))
        return;
    lock_acquire(lock);
    __atomic_fetch_or(&lock->word, LOCK_FORK, __ATOMIC_RELAXED);
}

void lock_finish_fork(struct lock *lock)
{
    if (held_by(lock, lock_self()) && ATOMIC_LOAD_RELAXED(&lock->word) & LOCK_FORK)
        open_lock(lock);
}

void lock_adopt_in_child(struct lock *lock, uint32_t before)
{
    if (held_by(lock, before)) {
        bool fork = ATOMIC_LOAD_RELAXED(&lock->word) & LOCK_FORK;
        __atomic_store_n(&lock->word, fork ? 0 : lock_self(), __ATOMIC_RELEASE);
    }
}
