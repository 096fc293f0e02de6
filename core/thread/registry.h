/* The registry: all heaps ever made, who owns them, and the pool of those that nobody does.
 *
 * A heap that a thread gives back waits in the pool for the next one: some as they are, with their
 * blocks, some empty, and the rest *bare*, with an area that is all zero and has no pages. Where
 * the pool is empty, a heap is looked for whose owner ended without giving it back, or that
 * belonged to a thread of a parent process, and only then a new one is made.
 */
#ifndef THREAD_REGISTRY_H
#define THREAD_REGISTRY_H

#include "slab/shard.h"
#include "thread/heap.h"

/* What all heaps together have counted of a class. */
struct heap_counts {
    uint64_t pops, cached;
    struct magazine_counts magazines;
};

/* The heaps of a shard that no thread owns. */
struct pool {
    struct heap *warm; /* lock: with blocks in magazines */
    struct heap *free; /* lock: with empty magazines */
    struct heap *bare; /* lock: the same, and their areas are all zero */
    unsigned owned;    /* lock: how many others of the shard have an owner */
};

/* For registry.c, and for who looks at the process from outside (report/descriptor.h). */
struct registry {
    struct lock lock CACHE_ALIGNED;
    struct heap *all;    /* atomic: release on store pairs with acquire on load */
    unsigned warm_count; /* lock: of all pools */
    unsigned free_count; /* the same; read by any thread */
    unsigned count;      /* lock */
    unsigned owned;      /* written under lock, read by any thread: heaps with an owner */
    int idle;            /* lock: of these, what others have emptied, and no call came since */
    unsigned crowd;      /* written under lock, read by any thread: of the rest, how many a CPU */
    unsigned cpus;       /* atomic relaxed, any thread; 1 at least */
    uint32_t process;    /* atomic, any thread: see registry_enter_process; release, acquire */
    struct heap *next_suspect; /* atomic: release on store, acquire on load; see find_abandoned */
    struct pool pools[SHARD_MAX];
    struct heap_counts gone[CLASS_COUNT]; /* lock: counts of areas that became zero since */
    struct heap_counts sums[CLASS_COUNT]; /* lock: what heap_add_counts found last */
};

extern struct registry registry;

/* Called once, by the first call of all: puts the library's own heap into the pool. */
void registry_start(void);

/* The options are known, from which the number of shards follows. */
void registry_read_options(void);

/* A heap for the calling thread, ready to be used: out of the pool, left behind by another thread,
 * or new; NULL when no memory is left. */
struct heap *registry_adopt(void);

/* Takes it back. */
void registry_give_back(struct heap *heap);

/* The thread's heap is one of its parent process: from now on it is this process's. */
void registry_enter_process(struct heap *heap);

/* In a new process no thread has a heap yet. */
void registry_begin_process(void);

/* Sends home what heaps of the pool cache that were left as they were, for the next thread, if they
 * lay there for so many ticks of the purge. */
void heap_flush_pooled(unsigned ticks);

/* A tick of the purge: what lay in pooled heaps since the last one goes home. */
void heap_tick_pool(void);

/* True when a heap that waits with its blocks for the next thread caches the block. */
bool heap_pool_caches(unsigned size_class, const void *block);

/* Adds up, for each class from `first` to `last`, what all heaps have counted, in one walk; and
 * tells what came out of that, or of a later one by another thread. */
void heap_add_counts(unsigned first, unsigned last);
struct heap_counts heap_counts(unsigned size_class);

/* All heaps ever made, newest first, linked by `next`; they are never unmapped. */
struct heap *heap_first(void);

/* How many threads there are for each CPU, rounded down; 1 or more. A thread that waits for two
 * others, on two CPUs, shall not make their magazines shorter. Those do not count whose heaps were
 * drained, since they made no call for a tick or two. */
unsigned heap_crowd(void);

/* One heap more, or less, was drained and waits for its owner's next call. No gate but the caller's
 * own is held. */
void registry_count_idle(int change);

/* At most one thread has a heap. */
bool heap_is_only_one(void);

/* True while a thread owns the heap. */
bool heap_in_use(const struct heap *heap);

/* In a fork child: repairs the registry, whose lock was held by a thread that does not exist here.
 */
void heap_repair_registry(void);

struct lock *heap_registry_lock(void);

#endif
