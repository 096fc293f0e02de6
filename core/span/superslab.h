/* One superslab: 2 MiB of address space, aligned to 2 MiB, cut into runs of 4 KiB pages.
 *
 *     page    0        16       32                                   511
 *             | slab   | slab   | span |free| span ....               |
 *             unit 0   unit 1   unit 2 ...                     unit 31
 *
 * The record lies elsewhere (map/metadata.h); all 2 MiB are for blocks. Runs are tracked by two
 * bits a page: free or not, dirty or not. A page is dirty from the moment it was handed out until
 * it is purged: pages that are not dirty read as zero and cost no memory.
 *
 * Pure data structure: no lock, no system call. The page heap's lock guards every field that is
 * not marked otherwise.
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
    SUPERSLAB_WORDS = SUPERSLAB_PAGES / 64,
    SUPERSLAB_UNITS = REGION_SIZE / UNIT_SIZE,
    UNIT_PAGES = UNIT_SIZE / PAGE_SIZE,
    SUPERSLAB_GROUPS = 7 /* kinds of groups of units: see superslab_group */
};

struct slab;

struct superslab {
    struct region region;      /* const while registered */
    struct list_node by_run;   /* page heap: list of superslabs with the same bound on runs */
    struct list_node by_unit;  /* page heap: list of superslabs with as many free units, grouped */
    struct list_node by_dirt;  /* page heap: list of superslabs with free dirty pages */
    uint16_t longest_run;      /* no free run has more pages: a bound, put right by searches */
    uint16_t free_pages;       /* pages that are free */
    uint16_t dirty_free_pages; /* pages that are free and dirty */
    bool listed;               /* page heap: not somebody's who maps or unmaps it */
    uint16_t listed_run;       /* page heap: which list `by_run` is on */
    uint8_t listed_units;      /* page heap: which list `by_unit` is on, */
    uint8_t listed_group;      /* of which kind */
    bool huge;                 /* atomic relaxed, any thread: huge pages are advised */
    uint32_t free_units;       /* bit per unit: all its pages are free */
    uint64_t purge_round;      /* last round of purging that looked at this superslab */
    uint64_t free[SUPERSLAB_WORDS];
    uint64_t dirty[SUPERSLAB_WORDS];
    struct slab *slab_of_unit[SUPERSLAB_UNITS]; /* atomic: release on store, acquire on load */
    uint16_t span_pages[SUPERSLAB_PAGES]; /* length of the span that starts at the page, else 0 */
};

struct run {
    unsigned first; /* page */
    unsigned pages;
};

/* An all-zero record becomes a superslab of clean free pages at `base`. */
void superslab_init(struct superslab *superslab, char *base);

/* Finds the lowest `pages` free pages in a row that start at a multiple of `alignment` pages. False
 * when there are none; without alignment, the bound on runs then falls below `pages`. Takes
 * nothing. */
bool superslab_find(
    struct superslab *superslab, unsigned pages, unsigned alignment, struct run *found);

/* The same for `units` free units, 1, 2 or 4, at a multiple of their number. */
bool superslab_find_units(const struct superslab *superslab, unsigned units, struct run *found);

/* The largest group of free units: 0 when no unit is free, else one more than the binary logarithm
 * of its length, which is a power of two; groups start at multiples of their length. */
unsigned superslab_group(const struct superslab *superslab);

/* Takes the free pages of `run`. Returns how many of them are dirty. */
unsigned superslab_take(struct superslab *superslab, struct run run);

/* Puts pages back. The first `dirty_pages` of them are dirty now; nobody touched the others, which
 * are as dirty or clean as when they were taken. */
void superslab_put(struct superslab *superslab, struct run run, unsigned dirty_pages);

/* Next maximal run of free dirty pages at or after `page`; false when there is none. */
bool superslab_next_dirty(const struct superslab *superslab, unsigned page, struct run *found);

/* First page of the span that covers `page`; SUPERSLAB_PAGES when no span does. */
unsigned superslab_span_start(const struct superslab *superslab, unsigned page);

ALWAYS_INLINE char *superslab_address(const struct superslab *superslab, unsigned page)
{
    return superslab->region.base + ((size_t)page << PAGE_SHIFT);
}

ALWAYS_INLINE unsigned superslab_page_of(const void *address)
{
    return (unsigned)(((uintptr_t)address & (REGION_SIZE - 1)) >> PAGE_SHIFT);
}

/* Makes the counts and bounds anew, from the bitmaps. */
void superslab_repair(struct superslab *superslab);

/* Debug walker: the counts agree with the bitmaps, spans do not overlap free pages. */
void superslab_check(const struct superslab *superslab);

#endif
