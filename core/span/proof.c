/* See proof.h. */
#include "span/proof.h"

#include "base/atomic.h"
#include "base/sparse.h"
#include "base/tuning.h"
#include "span/superslab.h"

/* How many bytes may be in huge pages on trust: more by twice the bytes of each freed block that
 * was used whole, a quarter after each other one. Atomic relaxed, any thread. */
static size_t proved_bytes;

bool proof_is_dense(const char *base, size_t size)
{
    enum { STEP = 5 };
    size_t stride = round_down(size / PROOF_PLACES, PAGE_SIZE);
    unsigned written = 0, untouched = 0;
    /* Not at the ends, where some programs have made pages unreadable. Reading an untouched page is
     * a fault: so stops at the first few, and begins in the middle. */
    const char *first = base + round_down(stride / 2, PAGE_SIZE);
    for (unsigned i = 0; i < PROOF_PLACES && untouched <= written; i++) {
        unsigned place = (PROOF_PLACES / 2 + i * STEP) % PROOF_PLACES;
        bool zero = sparse_is_zero(first + place * stride, PAGE_SIZE);
        untouched += zero;
        written += !zero;
    }
    return written >= PROOF_DENSE;
}

/* Changes proved_bytes from `*proved` to `now`; false: another thread has changed it. */
static bool change(size_t *proved, size_t now)
{
    return __atomic_compare_exchange_n(
        &proved_bytes, proved, now, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void proof_learn(const char *base, size_t size)
{
    bool dense = proof_is_dense(base, size);
    size_t proved = ATOMIC_LOAD_RELAXED(&proved_bytes);
    while (!change(&proved, dense ? size_min(proved + 2 * size, TIB) : proved / 4))
        continue;
}

bool proof_holds(size_t size)
{
    return ATOMIC_LOAD_RELAXED(&proved_bytes) >= size;
}

bool proof_take(size_t size)
{
    size_t proved = ATOMIC_LOAD_RELAXED(&proved_bytes);
    while (proved >= size)
        if (change(&proved, proved - size))
            return true;
    return false;
}
