/* See zero_size.h. */
#include "hardened/zero_size.h"

#include "base/assert.h"
#include "base/bits.h"
#include "map/page_map.h"
#include "os/fatal.h"
#include "os/os.h"

enum { WORDS = ZERO_SIZE_SLOTS / 64, FORMS = FORM_NEW_ARRAY + 1, SHARE = WORDS / 4 };

/* The words of each kind of function. */
static const struct {
    unsigned first, count;
} words_of[FORMS] = {{0, 2 * SHARE}, {2 * SHARE, SHARE}, {3 * SHARE, SHARE}};

uintptr_t zero_size_start;

static uint64_t *taken; /* const once there is a range; atomic relaxed, any thread: a bit a slot */
static bool opening;    /* atomic relaxed, any thread: a thread makes the range, or has made it */

/* By kind of function; atomic relaxed, any thread. */
static uint32_t turns[FORMS]; /* of its words */
static int32_t lefts[FORMS];  /* free slots, less those that threads are about to take */

/* Reserves the range with the first request: it may be a large part of the addresses that a program
 * may lock or map. False: there is no memory for it, or another thread is doing it. */
static SLOW_PATH bool reserve_range(void)
{
    if (__atomic_exchange_n(&opening, true, __ATOMIC_RELAXED))
        return ATOMIC_LOAD_ACQUIRE(&zero_size_start) != 0;
    size_t bytes = WORDS * sizeof *taken;
    uint64_t *bits = os_map(bytes, os_page_size(), NULL);
    uintptr_t start = bits ? page_map_reserve(ZERO_SIZE_BYTES) : 0;
    if (start) {
        taken = bits;
        for (unsigned form = 0; form < FORMS; form++)
            lefts[form] = (int32_t)words_of[form].count * 64;
        ATOMIC_STORE_RELEASE(&zero_size_start, start);
        return true;
    }
    if (bits)
        os_discard(bits, bytes);
    ATOMIC_STORE_RELAXED(&opening, false);
    return false;
}

static void *address_of(unsigned word, unsigned bit)
{
    return (void *)(zero_size_start + (word * (size_t)64 + bit) * MIN_ALIGNMENT);
}

/* The slots of a word that start at multiples of the alignment, as bits. */
static uint64_t slots_at(unsigned word, size_t alignment)
{
    size_t step = alignment / MIN_ALIGNMENT;
    if (step < 64)
        return UINT64_MAX / (((uint64_t)1 << step) - 1);
    return word % (step / 64) == 0;
}

/* Begins a word later each time, so that a freed address is not the next one. Goes round twice:
 * another thread may take the last free slot ahead of us, and free one behind us. */
static void *take_free_slot(size_t alignment, enum form form)
{
    unsigned turn = ATOMIC_ADD_RELAXED(&turns[form], 1), count = words_of[form].count;
    for (unsigned i = 0; i < 2 * count; i++) {
        unsigned word = words_of[form].first + (turn + i) % count;
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

void *zero_size_take(size_t alignment, enum form form)
{
    alignment = size_max(alignment, MIN_ALIGNMENT);
    if (UNLIKELY(alignment > REGION_SIZE))
        return NULL;
    if (UNLIKELY(!ATOMIC_LOAD_ACQUIRE(&zero_size_start)) && !reserve_range())
        return NULL;
    void *slot = ATOMIC_ADD_RELAXED(&lefts[form], -1) > 0 ? take_free_slot(alignment, form) : NULL;
    if (UNLIKELY(!slot))
        ATOMIC_ADD_RELAXED(&lefts[form], 1);
    return slot;
}

enum form zero_size_form(const void *address)
{
    size_t word = ((uintptr_t)address - zero_size_start) / MIN_ALIGNMENT / 64;
    return word < words_of[FORM_NEW].first         ? FORM_MALLOC
           : word < words_of[FORM_NEW_ARRAY].first ? FORM_NEW
                                                   : FORM_NEW_ARRAY;
}

static size_t slot_index(const void *address, const char *call)
{
    size_t offset = (uintptr_t)address - zero_size_start;
    if (UNLIKELY(offset % MIN_ALIGNMENT))
        fatal_pointer(call, DEFECT_MISALIGNED, address, NULL, 0);
    return offset / MIN_ALIGNMENT;
}

void zero_size_check(const void *address, const char *call)
{
    size_t slot = slot_index(address, call);
    if (UNLIKELY(!(ATOMIC_LOAD_RELAXED(&taken[slot / 64]) >> slot % 64 & 1)))
        fatal_pointer(call, DEFECT_DOUBLE_FREE, address, NULL, 0);
}

void zero_size_free(const void *address)
{
    size_t slot = slot_index(address, "free");
    uint64_t bit = (uint64_t)1 << slot % 64;
    if (UNLIKELY(!(__atomic_fetch_and(&taken[slot / 64], ~bit, __ATOMIC_RELEASE) & bit)))
        fatal_pointer("free", DEFECT_DOUBLE_FREE, address, NULL, 0);
    ATOMIC_ADD_RELAXED(&lefts[zero_size_form(address)], 1);
}

unsigned zero_size_taken(void)
{
    unsigned count = 0;
    for (unsigned word = 0; zero_size_start && word < WORDS; word++)
        count += bits_count(taken[word]);
    size_t left = 0;
    for (unsigned form = 0; form < FORMS; form++)
        left += (size_t)ATOMIC_LOAD_RELAXED(&lefts[form]);
    ASSERT(!zero_size_start || left == ZERO_SIZE_SLOTS - count);
    (void)left; /* only asserted on */
    return count;
}
