/* One superslab: 2 MiB of address space, aligned to 2 MiB, cut into runs of units of 64 KiB.
 *
 *     unit    0        1        2                 5                  31
 *             | slab   | slab   | slab of three   | free   | ...       |
 *
 * The record lies elsewhere (map/metadata.h); all 2 MiB are for blocks. A unit is free or part of a
 * slab; a page of 4 KiB is dirty or clean. When a slab ends, superslab_put makes its pages dirty up
 * to the last block that was ever handed out, and they stay so until they are purged: clean pages
 * of free units read as zero and cost no memory. While a slab lives, the bits say which of its
 * pages were dirty when it was made.
 *
 * For each block longer than a page the superslab keeps a state, a byte: BLOCK_UNUSED or
 * BLOCK_FREED while it is free, and from malloc to free one that tells its class. There is a byte
 * for each 2 KiB; bytes that belong to no block have BLOCK_UNUSED. Long blocks start at multiples
 * of half a KiB: the state of a live block also tells at which of four places it starts, so a byte
 * tells whether a pointer is a block, and of which class. The states come last in the record, and
 * take no memory if there are no long blocks.
 *
 *     states  | 72 0 .. 0 | freed 0 .. 0 | 49 0 49' 0 49" 0 0 49 .. |
 *
 * The owner of a block, or the thread that hands it out, writes its state; a thread that makes or
 * ends a slab owns all its blocks.
 *
 * Pure data structure: no lock, no system call. The page heap's lock guards every field that is not
 * marked otherwise.
 */
#ifndef SPAN_SUPERSLAB_H
#define SPAN_SUPERSLAB_H

#include "base/bits.h"
#include "base/list.h"
#include "map/page_map.h"

#define PAGE_SHIFT 12
#define PAGE_SIZE ((size_t)1 << PAGE_SHIFT)

enum {
    SUPERSLAB_PAGES = REGION_SIZE / PAGE_SIZE,
    SUPERSLAB_UNITS = REGION_SIZE / UNIT_SIZE,
    UNIT_PAGES = UNIT_SIZE / PAGE_SIZE,
    SUPERSLAB_ALIGNMENTS = 4, /* of runs of units: 1, 2, 4, and 8 or more */
    SLAB_RECORD_SIZE = 64
};

struct slab;

struct superslab {
    struct region region;      /* const while registered */
    struct list_node by_run;   /* page heap: list of superslabs with the same longest run */
    struct list_node by_dirt;  /* page heap: list of superslabs with free dirty pages */
    uint32_t free_units;       /* bit per unit */
    uint16_t dirty_free_pages; /* pages of free units that are dirty */
    uint8_t listed_run;        /* page heap: the list that `by_run` is on */
    uint8_t part;              /* page heap; const while registered: whose lock is meant */
    uint8_t fence;             /* const while registered: hardened library: how pages are closed */
    uint64_t purge_round; /* last round of purging that looked here; after a refusal, the next that
                             may */
    uint16_t dirty[SUPERSLAB_UNITS]; /* bit per page; while a unit is in use: read by its user */
    struct slab *slab_of_unit[SUPERSLAB_UNITS]; /* atomic: release on store, acquire on load */
    /* Records of slabs of few blocks; the owner of a unit owns its record. For units that are
     * multiples of 8 they are in slab_records, for other alignments at these pointers, or NULL;
     * atomic: release on store, acquire on load. Superslabs full of long slabs mostly need none of
     * these. */
    char *more_slab_records[SUPERSLAB_ALIGNMENTS - 1];
    char slab_records[SUPERSLAB_UNITS / 8][SLAB_RECORD_SIZE] __attribute__((aligned(64)));
    _Alignas(64) uint8_t block_state[REGION_SIZE / (2 * KIB)]; /* atomic relaxed, any thread */
};

/* BLOCK_UNUSED: not handed out since its slab was made. BLOCK_FREED: handed out, and free.
 * BLOCK_SAMPLED: live, and known to its slab. BLOCK_ADVISABLE: live, and the program may have
 * advised its pages; its slab tells the class. Both keep it off the hit paths. The state of any
 * other live block is the number of its class among the long ones, from 1 on, above two bits for
 * the place where it starts. */
enum {
    BLOCK_UNUSED = 0,
    BLOCK_ADVISABLE = 0xf4,
    BLOCK_SAMPLED = 0xf8,
    BLOCK_FREED = 0xfc,
    BLOCK_PLACE_BITS = 2,
    BLOCK_PLACE_SHIFT = 9
};

/* The first long class has the number 1. */
enum { BLOCK_CLASS_BIAS = LONG_CLASS_FIRST - 1 };

_Static_assert(
    (SIZE_COUNT - BLOCK_CLASS_BIAS + 1) << BLOCK_PLACE_BITS <= BLOCK_ADVISABLE,
    "no class is like freed, sampled or advisable");

struct run {
    unsigned first; /* unit */
    unsigned units;
};

/* Makes an all-zero record one of a superslab of clean free units at `base`. */
void superslab_init(struct superslab *superslab, char *base);

/* The units, a bit each, at which `units` of the free ones in a row begin, at a multiple of
 * `alignment` units, a power of two. */
uint32_t superslab_starts(uint32_t free_units, unsigned units, unsigned alignment);

/* Finds `units` free units in a row that start at a multiple of `alignment` units, a power of two,
 * and at unit `first` or above, or else anywhere: of these the run with most dirty pages, the
 * lowest of several; after a `first`, which makes the place hard to foresee, the lowest. Returns
 * the number of its dirty pages; -1: there is no such run. Takes nothing. */
int superslab_find(
    const struct superslab *superslab, unsigned units, unsigned alignment, unsigned first,
    struct run *found);

/* The most free units in a row. */
unsigned superslab_longest_run(const struct superslab *superslab);

/* Takes the free units of `run`. Returns how many of their pages are dirty. */
unsigned superslab_take(struct superslab *superslab, struct run run);

/* Puts units back. The first `dirty_pages` of their pages become dirty; the others were not
 * touched, and are as dirty or clean as when they were taken. */
void superslab_put(struct superslab *superslab, struct run run, unsigned dirty_pages);

/* Next run of free units at or after `unit`, each with dirty pages; false: there is none. */
bool superslab_next_dirty(const struct superslab *superslab, unsigned unit, struct run *found);

/* Makes the pages of these units, which the caller has taken, clean. */
void superslab_clean(struct superslab *superslab, struct run run);

ALWAYS_INLINE char *superslab_address(const struct superslab *superslab, unsigned unit)
{
    return superslab->region.base + ((size_t)unit << UNIT_SHIFT);
}

ALWAYS_INLINE unsigned superslab_unit_of(const void *address)
{
    return (unsigned)(((uintptr_t)address & (REGION_SIZE - 1)) >> UNIT_SHIFT);
}

/* The alignment of the unit, as a binary logarithm, at most SUPERSLAB_ALIGNMENTS - 1. */
ALWAYS_INLINE unsigned superslab_alignment(unsigned unit)
{
    return unit ? (unsigned)size_min(bits_lowest(unit), SUPERSLAB_ALIGNMENTS - 1)
                : SUPERSLAB_ALIGNMENTS - 1;
}

/* Bytes of the slab records of units with exactly that alignment. */
ALWAYS_INLINE size_t superslab_records_size(unsigned alignment)
{
    return (size_t)SUPERSLAB_UNITS / 2 * SLAB_RECORD_SIZE >> alignment;
}

/* True for a page that may not read as zero. */
ALWAYS_INLINE bool superslab_is_dirty(const struct superslab *superslab, const void *address)
{
    unsigned page = (unsigned)(((uintptr_t)address & (UNIT_SIZE - 1)) >> PAGE_SHIFT);
    return superslab->dirty[superslab_unit_of(address)] >> page & 1;
}

/* The state of a live block of the class. */
ALWAYS_INLINE uint8_t superslab_live_state(const void *block, unsigned size_class)
{
    unsigned place = (uintptr_t)block >> BLOCK_PLACE_SHIFT & ((1 << BLOCK_PLACE_BITS) - 1);
    return (uint8_t)((size_class - BLOCK_CLASS_BIAS) << BLOCK_PLACE_BITS | place);
}

/* The place of the state of a long block. */
ALWAYS_INLINE uint8_t *superslab_state(struct superslab *superslab, const void *block)
{
    return &superslab->block_state[((uintptr_t)block & (REGION_SIZE - 1)) / (2 * KIB)];
}

/* The place of the state of any long block of ours. */
ALWAYS_INLINE uint8_t *superslab_state_of(const void *block)
{
    return superslab_state((struct superslab *)page_map_superslab_of(block), block);
}

/* The place of the state of a long block that would start at the pointer; NULL: none can. */
ALWAYS_INLINE uint8_t *superslab_find_state(const void *pointer)
{
    uintptr_t entry = page_map_find(pointer);
    if (UNLIKELY(!(entry & ENTRY_SUPERSLAB)))
        return NULL;
    return superslab_state((struct superslab *)(entry - ENTRY_SUPERSLAB), pointer);
}

/* The class of the live long block that starts at the pointer, whose state superslab_find_state has
 * found; CLASS_NONE: none does. The pointer's offset in its 2 KiB has to equal the place: both are
 * moved to the upper end of a word, where they leave bits if they differ. */
ALWAYS_INLINE size_t superslab_live_class(const uint8_t *state, const void *pointer)
{
    enum { LOW_BITS = BLOCK_PLACE_SHIFT + BLOCK_PLACE_BITS };
    uint64_t number = ATOMIC_LOAD_RELAXED(state);
    number = number >> BLOCK_PLACE_BITS | number << (64 - BLOCK_PLACE_BITS);
    number ^= (uint64_t)(uintptr_t)pointer << (64 - LOW_BITS);
    bool live = number - 1 < SIZE_COUNT - BLOCK_CLASS_BIAS;
    return LIKELY(live) ? number + BLOCK_CLASS_BIAS : CLASS_NONE;
}

/* True for the state of a live block of the class that starts there, advisable or not. */
ALWAYS_INLINE bool superslab_is_live(unsigned state, const void *block, unsigned size_class)
{
    return state == superslab_live_state(block, size_class) || state == BLOCK_ADVISABLE;
}

/* Makes a long block of ours live. */
ALWAYS_INLINE void superslab_start_block(const void *block, unsigned size_class)
{
    ATOMIC_STORE_RELAXED(superslab_state_of(block), superslab_live_state(block, size_class));
}

/* Makes a block in a slab of samples live, without a class for hit paths. Returns the former state.
 */
ALWAYS_INLINE unsigned superslab_sample_block(const void *block)
{
    uint8_t *state = superslab_state_of(block);
    unsigned before = ATOMIC_LOAD_RELAXED(state);
    ATOMIC_STORE_RELAXED(state, BLOCK_SAMPLED);
    return before;
}

/* True for a long block of ours that the program may have advised. */
ALWAYS_INLINE bool superslab_is_advisable(const void *block)
{
    return ATOMIC_LOAD_RELAXED(superslab_state_of(block)) == BLOCK_ADVISABLE;
}

/* Makes a long block of ours free. */
ALWAYS_INLINE void superslab_end_block(const void *block)
{
    ATOMIC_STORE_RELAXED(superslab_state_of(block), BLOCK_FREED);
}

/* Makes the counts anew, from the bitmaps. */
void superslab_repair(struct superslab *superslab);

#endif
