/* See due.h. */
#include "trace/due.h"

#include "base/random.h"
#include "os/os.h"

static size_t mean_bytes; /* atomic relaxed, any thread */

void due_set_mean(size_t bytes)
{
    static uint8_t last; /* setters of the mean only, one at a time */
    ATOMIC_STORE_RELEASE(&trace_round, 0);
    ATOMIC_STORE_RELAXED(&mean_bytes, bytes);
    last = (uint8_t)(last == UINT8_MAX ? 1 : last + 1);
    ATOMIC_STORE_RELEASE(&trace_round, bytes ? last : 0);
}

size_t due_mean(void)
{
    return ATOMIC_LOAD_RELAXED(&mean_bytes);
}

/* ---- The next sample ------------------------------------------------------------------------- */

/* Whole bytes up to the next sample: an exponential variate times the mean, by von Neumann's
 * method, which needs no logarithm. Draws numbers as long as each is less than the one before:
 * their count is odd with the chance e to the minus first number. If it is even, one more mean lies
 * before the sample, and the game begins anew. */
static uint64_t draw(uint64_t *random, size_t mean)
{
    if (UNLIKELY(*random == 0))
        *random = os_clock_ns() ^ (uintptr_t)random << 20;
    for (uint64_t means = 0; mean > TRACE_EVERY; means++) {
        uint64_t first = random_next(random), last = first, next;
        bool odd = true;
        for (; (next = random_next(random)) < last; last = next)
            odd = !odd;
        if (odd)
            return means * mean + (uint64_t)((unsigned __int128)first * mean >> 64);
    }
    return 0;
}

bool due_decide(uint64_t *random, size_t bytes)
{
    size_t mean = due_mean();
    return mean && draw(random, mean) < size_max(bytes, 1);
}

uint64_t due_next(uint64_t *random, size_t bytes, uint64_t most, uint8_t *round)
{
    uint8_t now = ATOMIC_LOAD_RELAXED(&trace_round);
    size_t mean = due_mean();
    *round = 0;
    uint64_t gap = now && mean ? draw(random, mean) / bytes : most;
    if (gap >= most)
        return most;
    *round = now;
    return gap + 1;
}

/* ---- The weight of a sample ------------------------------------------------------------------ */

/* 1 - e^-x of x up to 16 in 1/ONE: the series for a small part of x, which then doubles. */
static const uint64_t ONE = (uint64_t)1 << 31;

static uint64_t one_minus_exp(uint64_t x)
{
    unsigned doublings = 0;
    for (; x > ONE / 16; x /= 2)
        doublings++;
    uint64_t sum = x - x * (x / 2 - x * (x / 6 - x / 24 * x / ONE) / ONE) / ONE;
    for (; doublings; doublings--)
        sum = sum * (2 * ONE - sum) / ONE;
    return sum;
}

uint64_t due_stands_for(size_t bytes)
{
    enum { SURE = 16, RARE = 256 };
    uint64_t mean = due_mean(), size = size_max(bytes, 1);
    if (!mean || size / SURE >= mean)
        return mean ? SITE_PARTS : 0;
    /* For small x, 1/(1 - e^-x) is 1/x + 1/2. */
    if (mean / RARE >= size)
        return (SITE_PARTS * mean + size / 2) / size + SITE_PARTS / 2;
    for (; size >> 28; size /= 2)
        mean /= 2;
    uint64_t chance = one_minus_exp(size * ONE / mean);
    return (SITE_PARTS * ONE + chance / 2) / chance;
}
