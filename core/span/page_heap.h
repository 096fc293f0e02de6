/* The page heap: hands out and takes back runs of units, for slabs of any class.
 *
 * Superslabs are on lists by their longest run of free units: a superslab with the shortest run
 * that serves is found in constant time. Freed runs stay dirty until they are used again or purged
 * (reclaim/ decides when).
 *
 * Each shard has a part, with superslabs that never leave it: so threads that share nothing do not
 * meet. If the own part has no run, other parts with memory to spare are asked, and only then the
 * system.
 *
 * One lock a part, mostly held for a few hundred instructions and never across a system call: a
 * purge takes its run out first, like an allocation.
 */
#ifndef SPAN_PAGE_HEAP_H
#define SPAN_PAGE_HEAP_H

#include "base/idle.h"
#include "os/lock.h"
#include "span/superslab.h"

struct unit_run {
    struct superslab *superslab;
    struct run run;
    unsigned dirty_pages; /* that may not read as zero: see superslab_is_dirty */
};

/* Maps the first superslab and the class map; false: the system refuses. To be called once, before
 * anything else here. */
bool page_heap_init(void);

/* Takes `units` units in a row that start at a multiple of `alignment` units, a power of two; both
 * are SUPERSLAB_UNITS at most. False: no memory is left, or it must not grow: then a run with clean
 * pages is refused, too, if more would be resident than lately (reclaim_clean_most). A superslab
 * mapped on the way belongs to the part. */
bool page_heap_take(
    unsigned part, unsigned units, unsigned alignment, bool may_grow, struct unit_run *taken);

/* Takes exactly these units. False: they are not all free, or reach beyond the superslab. */
bool page_heap_take_at(struct superslab *superslab, struct run run);

/* Puts a run back, of which at most the first `dirty_pages` pages were touched. */
void page_heap_put(struct superslab *superslab, struct run run, unsigned dirty_pages);

/* Gives back pages of a superslab, whole ones of the system that the caller has taken, and keeps
 * their addresses. False: the system refuses, or, unless all is to go, the program observes the
 * superslab. */
bool page_heap_purge_pages(
    struct superslab *superslab, void *address, size_t size, bool everything);

/* Free dirty pages that were not taken since the last call by the same watcher. */
size_t page_heap_unused_pages(enum idle_watcher watcher);

/* Gives about `bytes` of free dirty memory back to the system, beginning with the part that has
 * most; returns bytes. If there is no more, unmaps wholly free superslabs without memory, all but
 * the last one. With SIZE_MAX, tries again superslabs that the system refused before. */
size_t page_heap_purge(size_t bytes);

struct page_heap_stats {
    size_t superslabs;
    size_t used_pages;       /* in slabs */
    size_t dirty_free_pages; /* free, not given back */
};

/* As many as there are shards for heaps. */
enum { SHARD_PARTS_MAX = 64 };

struct page_heap_part {
    struct lock lock CACHE_ALIGNED;
    /* Lock; read as atomics by any thread. */
    struct page_heap_stats stats;
    struct list by_run[SUPERSLAB_UNITS + 1]; /* lock: by the longest run of free units */
    uint64_t runs;                           /* lock: bit per non-empty list of by_run */
    struct list by_dirt;                     /* lock: with free dirty pages */
    struct idle unused;                      /* lock: of free dirty pages */
    uint64_t purge_round;                    /* lock */
};

extern struct page_heap_part page_heap_part[SHARD_PARTS_MAX];

/* The numbers, each read without a lock. */
struct page_heap_stats page_heap_stats(void);

/* Parts in use here or in the BigCache: all up to the last that was. */
unsigned page_heap_parts(void);
void page_heap_use_part(unsigned part);

/* In a fork child: repairs a part whose lock was held by a thread that does not exist here. */
void page_heap_repair(unsigned part);

#endif
