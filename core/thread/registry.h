/* The registry: all heaps ever made, their owners, and the pool of heaps without one.
 *
 * A heap that a thread gives back waits in the pool for the next one: some heaps with their blocks,
 * some empty, and the rest *bare*, with an area of zeros without pages. If the pool is empty, a
 * thread looks for a heap whose owner ended without giving it back, or was a thread of a parent
 * process, and only then makes a new one.
 */
#ifndef THREAD_REGISTRY_H
#define THREAD_REGISTRY_H

#include "slab/shard.h"
#include "thread/heap.h"

/* The counts of a class in all heaps together. */
struct heap_counts {
    uint64_t pops, cached;
    struct magazine_counts magazines;
};

/* The heaps of a shard that no thread owns. */
struct pool {
    struct heap *warm;  /* lock: with blocks in magazines */
    struct heap *empty; /* lock: with empty magazines */
    struct heap *bare;  /* lock: with empty magazines, in areas that are all zero */
    unsigned owned;     /* lock: how many other heaps of the shard have an owner */
};

/* For registry.c, and for observers from outside (report/descriptor.h). */
struct registry {
    struct lock lock CACHE_ALIGNED;
    struct heap *all;     /* atomic: release on store pairs with acquire on load */
    unsigned warm_count;  /* lock: of all pools */
    unsigned empty_count; /* written under lock, read by any thread: of all pools */
    unsigned count;       /* lock */
    char *areas;          /* lock: see registry_new_area; those that are left */
    char *areas_end;      /* lock */
    unsigned left;        /* lock: heaps that were given back since one was taken */
    unsigned owned;       /* written under lock, read by any thread: heaps with an owner */
    int idle;         /* atomic relaxed, any thread: owned heaps that are drained, no call since */
    unsigned cpus;    /* atomic relaxed, any thread; 1 at least */
    uint32_t process; /* atomic, any thread: see registry_enter_process; release, acquire */
    struct heap *next_suspect; /* atomic: release on store, acquire on load; see find_abandoned */
    struct pool pools[SHARD_MAX];
    struct heap_counts gone[CLASS_COUNT]; /* lock: counts of heaps up to when they became bare */
    struct heap_counts sums[CLASS_COUNT]; /* lock: the last sums of heap_add_counts */
};

extern struct registry registry;

/* To be called once, by the first call of all: puts the library's own heap into the pool. */
void registry_start(void);

/* Sets the number of shards by the options. */
void registry_read_options(void);

/* The shard of the last block that the calling thread freed by a slow path. If its first call frees
 * one, it may go on where another thread has ended. If two ended at once, it takes the heap of this
 * shard, so that its blocks do not get between those of the other's successor. */
extern __thread uint8_t registry_preferred_shard __attribute__((tls_model("initial-exec")));

/* A heap for the calling thread, ready to be used: out of the pool, left behind by another thread,
 * or new; NULL: no memory is left. */
struct heap *registry_adopt(void);

/* HEAP_BYTES of zeros for what a thread keeps, never unmapped; NULL: no memory is left. */
void *registry_new_area(void);

/* Takes a heap back. */
void registry_give_back(struct heap *heap);

/* Makes the calling thread's heap, which is its parent process's, one of this process. */
void registry_enter_process(struct heap *heap);

/* In a new process: counts no heap as owned. */
void registry_begin_process(void);

/* Flushes the heaps in the pool. */
void registry_flush_pool(void);

/* The hand comes by (reclaim/engine.h): steps will flush the heaps that have been in the pool since
 * it last did. */
void registry_look_at_pool(void);

/* Flushes a few blocks of these; true: there may be more. */
bool registry_step_in_pool(void);

/* True if a heap in the pool caches the block. */
bool heap_pool_caches(unsigned size_class, const void *block);

/* Adds up the counts of all heaps, for each class from `first` to `last`, in one walk. After that
 * heap_counts returns the sums of this walk, or of a later one by another thread. */
void heap_add_counts(unsigned first, unsigned last);
struct heap_counts heap_counts(unsigned size_class);

/* All heaps ever made, newest first, linked by `next`; they are never unmapped. */
struct heap *heap_first(void);

/* How many threads there are, 1 at least. Those whose heaps are drained do not count, since they
 * made no call for a tick or two. */
unsigned heap_working(void);

/* How many threads work for each CPU, 1 at least; rounded down, so that a thread that waits for two
 * others, on two CPUs, does not shorten their magazines. */
unsigned heap_crowd(void);

/* Counts heaps that are drained and wait for their owners' next call: one more, or less. The caller
 * holds no gate but its own. */
void registry_count_idle(int change);

/* True if at most one thread has a heap. */
bool heap_is_only_one(void);

/* True while a thread owns the heap. */
bool heap_in_use(const struct heap *heap);

/* In a fork child: repairs the registry, whose lock was held by a thread that does not exist here.
 */
void heap_repair_registry(void);

#endif
