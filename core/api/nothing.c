/* See nothing.h. */
#include "api/nothing.h"

#include "base/assert.h"
#include "base/bits.h"
#include "map/page_map.h"
#include "os/fatal.h"
#include "os/os.h"

enum { WORDS = NOTHING_SLOTS / 64 };

uintptr_t nothing_start;

static uint64_t *taken; /* const once there is a range; atomic relaxed, any thread: a bit a slot */
static uint32_t turn;   /* atomic relaxed, any thread: of the words */
static int32_t left;    /* atomic relaxed, any thread: slots that nobody has taken or is to take */
static bool opening;    /* atomic relaxed, any thread: somebody makes the range, or has made it */

/* Not before an address is asked for: of what a program may lock or map it can be a large part.
 * False: there is no memory for it, or another thread is just about it. */
static SLOW_PATH bool reserve(void)
{
    if (__atomic_exchange_n(&opening, true, __ATOMIC_RELAXED))
        return ATOMIC_LOAD_ACQUIRE(&nothing_start) != 0;
    size_t bytes = WORDS * sizeof *taken;
    uint64_t *bits = os_map(bytes, os_page_size(), NULL);
    uintptr_t start = bits ? page_map_reserve(NOTHING_BYTES) : 0;
    if (start) {
        taken = bits;
        left = NOTHING_SLOTS;
        ATOMIC_STORE_RELEASE(&nothing_start, start);
        return true;
    }
    if (bits)
        os_discard(bits, bytes);
    ATOMIC_STORE_RELAXED(&opening, false);
    return false;
}

static void *address_of(unsigned word, unsigned bit)
{
    return (void *)(nothing_start + (word * (size_t)64 + bit) * MIN_ALIGNMENT);
}

/* The slots of a word that start at multiples of the alignment, as the range does. */
static uint64_t slots_at(unsigned word, size_t alignment)
{
    size_t step = alignment / MIN_ALIGNMENT;
    if (step < 64)
        return UINT64_MAX / (((uint64_t)1 << step) - 1);
    return word % (step / 64) == 0;
}

/* A word later each time, so that an address that was freed is not the next one. Somebody else may
 * take the slot that was left for us where we have looked already, and leave his behind us. */
static void *take(size_t alignment)
{
    unsigned first = ATOMIC_ADD_RELAXED(&turn, 1);
    for (unsigned i = 0; i < 2 * WORDS; i++) {
        unsigned word = (first + i) % WORDS;
        uint64_t seen = ATOMIC_LOAD_RELAXED(&taken[word]), slots = slots_at(word, alignment);
        while (~seen & slots) {
            unsigned bit = bits_lowest(~seen & slots);
            if (__atomic_compare_exchange_n(
                    &taken[word], &seen, seen | (uint64_t)1 << bit, false, __ATOMIC_ACQUIRE,
                    __ATOMIC_RELAXED))
                return address_of(word, bit);
        }
    }
    return NULL;
}

void *nothing_take(size_t alignment)
{
    alignment = size_max(alignment, MIN_ALIGNMENT);
    if (UNLIKELY(alignment > REGION_SIZE))
        return NULL;
    if (UNLIKELY(!ATOMIC_LOAD_ACQUIRE(&nothing_start)) && !reserve())
        return NULL;
    void *slot = ATOMIC_ADD_RELAXED(&left, -1) > 0 ? take(alignment) : NULL;
    if (UNLIKELY(!slot))
        ATOMIC_ADD_RELAXED(&left, 1);
    return slot;
}

static size_t slot_of(const void *address, const char *call)
{
    size_t offset = (uintptr_t)address - nothing_start;
    if (UNLIKELY(offset % MIN_ALIGNMENT))
        fatal_pointer(call, DEFECT_MISALIGNED, address, NULL, 0);
    return offset / MIN_ALIGNMENT;
}

void nothing_check(const void *address, const char *call)
{
    size_t slot = slot_of(address, call);
    if (UNLIKELY(!(ATOMIC_LOAD_RELAXED(&taken[slot / 64]) >> slot % 64 & 1)))
        fatal_pointer(call, DEFECT_DOUBLE_FREE, address, NULL, 0);
}

void nothing_free(const void *address)
{
    size_t slot = slot_of(address, "free");
    uint64_t bit = (uint64_t)1 << slot % 64;
    if (UNLIKELY(!(__atomic_fetch_and(&taken[slot / 64], ~bit, __ATOMIC_RELEASE) & bit)))
        fatal_pointer("free", DEFECT_DOUBLE_FREE, address, NULL, 0);
    ATOMIC_ADD_RELAXED(&left, 1);
}

unsigned nothing_taken(void)
{
    unsigned count = 0;
    for (unsigned word = 0; nothing_start && word < WORDS; word++)
        count += bits_count(taken[word]);
    ASSERT(!nothing_start || left == (int32_t)(NOTHING_SLOTS - count));
    return count;
}
