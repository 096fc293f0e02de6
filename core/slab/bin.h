/* Bins and shards: where magazines are refilled from and flushed to.
 *
 * A shard is a set of bins, one a size class; each thread is assigned a shard and refills from it,
 * so that threads on different CPUs seldom meet. A bin owns slabs of its class and holds those with
 * free blocks on lists by fullness; the fullest are used first, so that the others can run empty
 * and serve any class again. A freed block returns to the bin of its slab, whoever frees it.
 *
 * Whole free pages inside slabs that are in use go back to the system by a sweep over the emptiest
 * slabs of a bin: when a tick of the purge finds memory that nobody needed, piecemeal, or on
 * request.
 *
 * One short lock a bin, held for a batch. Slabs are created and destroyed outside it.
 */
#ifndef SLAB_BIN_H
#define SLAB_BIN_H

#include "os/lock.h"
#include "slab/slab.h"
#include "span/purge.h"

enum { SHARD_MAX = 64, FULLNESS_LEVELS = 4 };

struct bin {
    struct lock lock CACHE_ALIGNED;
    struct list slabs[FULLNESS_LEVELS]; /* lock: slabs with free blocks, fullest list first */
    struct list swept;                  /* lock: of these, those that a sweep has looked at */
    uint32_t slab_count;                /* written under lock, read by any thread */
    uint32_t free_blocks;               /* lock: in all its slabs */
    uint32_t free_swept;                /* lock: least of free_blocks since the last sweep's end */
    uint32_t free_unused;               /* lock: least of them since the last tick */
    uint8_t loans;                      /* atomic relaxed, any thread: see bin_may_borrow */
    bool sweeping;                      /* written under lock, read by any thread: goes on */
    uint64_t remote_blocks;             /* atomic relaxed, any thread: returned by other shards */
    uint64_t direct_blocks;             /* atomic relaxed, any thread: freed without a magazine */
};

/* Spreads the heaps made from now on over `count` shards. */
void shard_init(unsigned count);

/* Shard of the `index`th heap; one thread at a time asks. */
unsigned shard_of_heap(unsigned index);

/* Shards up to the last one that a heap was given: the locks of those beyond were never held. */
unsigned shards_with_heaps(void);

/* Shards that new heaps are spread over. */
unsigned shards_in_use(void);

/* Shards that may hold slabs; never shrinks. */
unsigned shard_count(void);

struct bin *bin_of(unsigned shard, unsigned class);

/* What a refill may cost: only blocks below the watermarks, fresh pages too, or more memory from
 * the system. */
enum refill { REFILL_USED, REFILL_FRESH, REFILL_MAP };

/* Takes up to `count` blocks of the class, lowest addresses of the fullest slabs first; returns how
 * many, 0 when no memory is left, or none at that cost. */
unsigned bin_refill(
    unsigned shard, unsigned class, void **blocks, unsigned count, enum refill cost);

/* True for the first few blocks wanted of a class that has no slab in the shard: then a block of a
 * larger class may serve instead. */
bool bin_may_borrow(unsigned shard, unsigned class);

/* Longest batch that bin_flush takes. */
enum { FLUSH_MAX = 256 };

/* Returns blocks of the class to the bins of their slabs. Aborts when one of them is not an
 * allocated block of the class. `shard` is that of the thread, for the statistics. */
void bin_flush(unsigned shard, unsigned class, void *const *blocks, unsigned count);

/* True when the block is free in its slab's bitmap. */
bool bin_block_is_free(const void *block, const char *call);

/* Gives the whole free pages inside the slabs of all bins back to the system; returns bytes. */
size_t bin_purge_all(void);

/* A tick of the purge: decides which bins to sweep. Arms the purge when one has much more free than
 * after its last sweep. */
void bin_tick(enum purge_tick tick);

/* Goes on with one of the sweeps; true when there was one. */
bool bin_sweep_step(void);

/* Puts the bin right after a thread that is gone held its lock. */
void bin_repair(unsigned shard, unsigned class);

/* Debug walker over all bins. */
void bin_check_all(void);

#endif
