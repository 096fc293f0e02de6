/* The page heap: hands out and takes back runs of units, for slabs of any class.
 *
 * Superslabs are kept in lists by their longest run of free units, and by the largest group that
 * starts at a multiple of its length, and within those by their number of free units: the fullest
 * superslab that serves is found in constant time. Freed runs stay dirty and are used again first;
 * purging gives them back (reclaim/ decides when).
 *
 * A part a shard, each with superslabs that never leave it: so threads that share nothing do not
 * meet. Who finds nothing in the own part looks whether another one has memory to
 * spare, and only then asks the system.
 *
 * One lock a part, mostly held for a few hundred instructions and never across a system call: a run
 * that is being purged is taken out first, like an allocation.
 */
#ifndef SPAN_PAGE_HEAP_H
#define SPAN_PAGE_HEAP_H

#include "base/idle.h"
#include "os/lock.h"
#include "span/parts.h"
#include "span/superslab.h"

struct unit_run {
    struct superslab *superslab;
    struct run run;
    unsigned dirty_pages; /* which may not read as zero: superslab_is_dirty tells which */
};

/* Maps the first superslab and the class map; false when the system refuses. The caller makes
 * sure that this happens once and before anything else here. */
bool page_heap_init(void);

/* What may be mapped when no superslab has room: nothing, one for small pages, or one for a huge
 * page, of which the caller then touches nearly all. */
enum growth { GROWTH_NONE, GROWTH_SMALL_PAGES, GROWTH_HUGE_PAGE };

/* Takes `units` units in a row that start at a multiple of `alignment` units, a power of two; both
 * are SUPERSLAB_UNITS at most. False when no memory is left. What is mapped belongs to the part, or
 * to the first when there is no memory for that one. */
bool page_heap_take(
    unsigned part, unsigned units, unsigned alignment, enum growth growth, struct unit_run *taken);

/* Takes exactly these units if all of them are free; they may reach beyond the superslab, where
 * none is. */
bool page_heap_take_at(struct superslab *superslab, struct run run);

/* Puts a run back; only its first `dirty_pages` pages have been touched. */
void page_heap_put(struct superslab *superslab, struct run run, unsigned dirty_pages);

/* Gives pages of a superslab, whole ones of the system that the caller has taken, back to the
 * system and keeps their addresses; false when it did not work. */
bool page_heap_purge_pages(struct superslab *superslab, void *address, size_t size);

/* Free dirty pages that nobody took since the last call by the same watcher. */
size_t page_heap_unused_pages(enum idle_watcher watcher);

/* Gives up to `bytes` of free dirty memory back to the system, where most of it lies first; returns
 * how much it was. When there is no more, superslabs that are wholly free and have no memory are
 * unmapped, all but the last one. SIZE_MAX asks for what the system refused before, too. */
size_t page_heap_purge(size_t bytes);

struct page_heap_stats {
    size_t superslabs;
    size_t used_pages;       /* in slabs */
    size_t dirty_free_pages; /* free, not given back */
};

struct page_heap_part {
    struct lock lock CACHE_ALIGNED;
    /* Lock; read as atomics by any thread. */
    struct page_heap_stats stats;
    struct list by_run[SUPERSLAB_UNITS + 1]; /* lock: by the longest run of free units */
    uint64_t runs;                           /* lock: bit per list of these that is not empty */
    struct list by_dirt;                     /* lock: with free dirty pages */
    struct idle unused;                      /* lock: of free dirty pages */
    uint64_t purge_round;                    /* lock */
};

extern struct page_heap_part page_heap_part[SHARD_PARTS_MAX];

/* A snapshot, taken without locks: of each number, and not of all together. */
struct page_heap_stats page_heap_stats(void);

/* Parts that were used. */
unsigned page_heap_parts(void);

/* Guards a part. */
struct lock *page_heap_lock(unsigned part);

/* In a fork child: repairs a part whose lock was held by a thread that does not exist here. */
void page_heap_repair(unsigned part);

#endif
