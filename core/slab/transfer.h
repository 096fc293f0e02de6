/* Transfer caches: free blocks on their way from one magazine to another, one a shard and class.
 *
 * What a magazine flushes goes to the transfer cache of its shard, and a refill takes from there
 * first, by copying pointers: slabs and their bitmaps are not touched. So a burst that is longer
 * than a magazine, and blocks that one thread allocates and another frees, cost little more than
 * hits.
 *
 *     magazines  <->  transfer cache of the shard, a stack  <->  bins
 *                       | full, or long blocks: to that of the shard of their slab
 *                       | empty, and the shard's bin too: from that of another shard
 *
 * So threads that share nothing do not meet, and what one thread allocates and another frees comes
 * back to the first. Long blocks go to the shard of their
 * slab, whoever asks for them: their states lie side by side (span/superslab.h), and threads that
 * had mixed them would write to the same cache lines at each call, for ever. A few that pass in a
 * batch of others part another time. A cache is bounded in bytes. It is drained to the bins when
 * memory has to grow, of what lay unused since the last tick of the purge, and when the process
 * exits.
 *
 * In the bitmaps its blocks count as handed out; those that a program freed carry the mark. That
 * each is the start of a block of the class is checked when it comes in.
 *
 * One lock a cache, held while pointers are copied.
 */
#ifndef SLAB_TRANSFER_H
#define SLAB_TRANSFER_H

#include "map/size_class.h"
#include "os/lock.h"

struct transfer {
    struct lock lock;
    uint32_t count;    /* written under lock, read by any thread */
    uint32_t capacity; /* written under lock, read by any thread: slots */
    uint32_t unused;   /* lock: least of `count` since the last tick */
    uint32_t excess;   /* atomic relaxed, any thread: what the tick wants drained */
    void **slots;      /* lock: those that came last at the end; a record of metadata, that grows */
};

/* Whether the blocks are to be put together: of long ones those that are from one shard, or of
 * which a look at a few finds no other; of short ones all. `shard`: the thread's. */
bool transfer_goes_together(
    unsigned shard, unsigned size_class, void *const *blocks, unsigned count);

/* Orders up to FLUSH_MAX blocks by the shard of their slabs, and stores for each of ALL_SHARDS_MAX
 * shards how many there are. */
void transfer_sort(unsigned shard, void **blocks, unsigned count, uint16_t *lengths);

/* Takes in as many of the blocks as there is room for, the first ones, and returns how many: into
 * the cache of the thread's shard; if they are of another shard, and it is full or they are long,
 * into that of theirs. Aborts when one of them is not the
 * start of a block of the class. */
unsigned transfer_put(unsigned shard, unsigned size_class, void *const *blocks, unsigned count);

/* Takes up to `count` blocks out, those that came last; returns how many. */
unsigned transfer_take(unsigned shard, unsigned size_class, void **blocks, unsigned count);

/* The same, from another shard than this one. */
unsigned transfer_take_from_others(
    unsigned shard, unsigned size_class, void **blocks, unsigned count);

/* True when a transfer cache of the class, of any shard, holds the block. */
SLOW_PATH bool transfer_holds(unsigned size_class, const void *block);

/* Blocks in the transfer caches of the class, of all shards. Any thread. */
unsigned transfer_blocks(unsigned size_class);

/* A tick of the purge: what nobody took since the last one is to be drained. */
void transfer_tick(void);

/* Drains some of that; true when there was any. */
bool transfer_step(void);

/* Returns everything to the bins; true when there was anything. */
bool transfer_drain(void);

/* The same for as many blocks as a superslab may hold, of one cache after the other. */
bool transfer_drain_some(void);

/* Says whether CPUs have several threads each: if so, there is room for more blocks. */
void transfer_set_crowded(bool is_crowded);

/* From now on nothing comes in: for the exit of the process. */
void transfer_close(void);

#endif
