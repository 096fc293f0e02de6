/* See lock.h. */
#include "os/lock.h"

#include "base/tuning.h"
#include "os/fatal.h"
#include "os/os.h"
#include "os/syscall.h"

static bool try_word(struct lock *lock, uint32_t from, uint32_t to)
{
    return __atomic_compare_exchange_n(
        &lock->word, &from, to, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* The word of a lock that the calling thread holds. Asked for in each round of a wait: a signal
 * handler may have forked, and the holder be gone (identity.h). */
static uint32_t own_word(const struct lock *lock)
{
    uint32_t self = identity_thread(identity_self());
    if ((ATOMIC_LOAD_RELAXED(&lock->word) & LOCK_HOLDER) == self)
        fatal("malloc or free called by a signal handler that interrupted malloc or free");
    return self;
}

static SLOW_PATH void wait_for(struct lock *lock)
{
    uint32_t word, self = own_word(lock);
    for (int i = 0; i < SPIN_ROUNDS; i++) {
        if (ATOMIC_LOAD_RELAXED(&lock->word) == 0 && try_word(lock, 0, self))
            return;
        cpu_relax();
    }
    /* A thread that has waited takes the lock with the waiters' bit: others may still sleep. */
    for (;;) {
        self = own_word(lock);
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

void lock_acquire(struct lock *lock)
{
    uint32_t open = 0, self = identity_thread(identity_self());
    if (UNLIKELY(!__atomic_compare_exchange_n(
            &lock->word, &open, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)))
        wait_for(lock);
}

void lock_release(struct lock *lock)
{
    if (__atomic_exchange_n(&lock->word, 0, __ATOMIC_RELEASE) & LOCK_WAITERS)
        os_futex_wake(&lock->word);
}

bool lock_is_lost(const struct lock *lock, uint32_t before)
{
    uint32_t holder = ATOMIC_LOAD_RELAXED(&lock->word) & LOCK_HOLDER;
    return holder && holder != before;
}

void lock_inherit(struct lock *lock, uint32_t before, uint32_t now)
{
    uint32_t word = ATOMIC_LOAD_RELAXED(&lock->word);
    /* Open, as most are: a write would copy the page. */
    if (!word)
        return;
    ATOMIC_STORE_RELEASE(&lock->word, (word & LOCK_HOLDER) == before ? now : 0);
}
