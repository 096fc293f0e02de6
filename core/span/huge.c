/* See huge.h. */
#include "span/huge.h"

#include "base/atomic.h"
#include "base/policy.h"
#include "base/sparse.h"
#include "base/tuning.h"
#include "os/os.h"
#include "span/superslab.h"

/* How many bytes may be in huge pages on trust: twice those of a freed block that was used whole,
 * however often it was, and a quarter after each block that was hardly used. Atomic relaxed, any
 * thread. */
static size_t trusted_bytes;

bool huge_is_unasked(void)
{
    return POLICY(huge_pages) && os_gives_huge_pages();
}

void huge_refuse(void *address, size_t size)
{
    if (size && huge_is_unasked())
        os_advise_huge_pages(address, size, false);
}

/* Changes trusted_bytes from `*trusted` to `now`; false: another thread has changed it. */
static bool change(size_t *trusted, size_t now)
{
    return __atomic_compare_exchange_n(
        &trusted_bytes, trusted, now, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

bool huge_is_wanted(size_t size, size_t live_bytes)
{
    if (size >= HUGE_ALONE_MIN && huge_is_unasked())
        return true;
    size_t trusted = ATOMIC_LOAD_RELAXED(&trusted_bytes);
    while (POLICY(huge_pages) && live_bytes >= HUGE_LIVE_MIN && trusted >= size)
        if (change(&trusted, trusted - size))
            return true;
    return false;
}

/* How many places are not zero, of every `step`th one from `first` on. */
static unsigned count_written(const char *base, size_t size, unsigned first, unsigned step)
{
    /* In the middle of its part: programs use the ends of blocks that they hardly use. */
    size_t stride = round_down(size / USE_PLACES, PAGE_SIZE), middle = stride / 2;
    unsigned written = 0;
    for (unsigned place = first; place < USE_PLACES; place += step)
        written +=
            !sparse_is_zero(base + place * stride + round_down(middle, PAGE_SIZE), PAGE_SIZE);
    return written;
}

/* Looks at a few places, at a quarter if one of these was written to, and at all if no other was:
 * reading a page that was never touched is a fault. */
unsigned huge_count_written(const char *base, size_t size)
{
    unsigned written = count_written(base, size, 0, 16);
    if (!written)
        return 0;
    written += count_written(base, size, 8, 16) + count_written(base, size, 4, 8);
    if (written > 1)
        return written * 4;
    return written + count_written(base, size, 2, 4) + count_written(base, size, 1, 2);
}

void huge_learn(unsigned written, size_t size)
{
    size_t trusted = ATOMIC_LOAD_RELAXED(&trusted_bytes), now;
    do {
        now = written >= USE_DENSE ? size_max(trusted, 2 * size) : trusted;
        now = written < USE_SPARSE ? trusted / DISTRUST_PART : now;
    } while (now != trusted && !change(&trusted, now));
}
