/* Transfer caches: free blocks on their way from one magazine to another, a stack on top of each
 * bin.
 *
 * A magazine flushes blocks to the stack of its shard's bin, and refills from there first, by
 * copying pointers: slabs and their bitmaps are not touched. So a burst that is longer than a
 * magazine, and blocks that one thread allocates and another frees, cost little more than hits.
 *
 *     magazines  <->  stack on top of the shard's bin  <->  slabs of all bins
 *                       | full: to that of the bin of their slab
 *                       | empty, and the shard's slabs too: from that of another shard
 *
 * So threads that share nothing do not meet, and blocks that one thread allocates and another frees
 * come back to the first. A stack is bounded in bytes. It is drained to the slabs when memory has
 * to grow, when the process exits, and, as far as it lay unused since the last one, at a tick of
 * the purge.
 *
 * If more than TRANSFER_FREED_MAX tiny blocks came since anybody asked a bin for some, it stacks
 * none until then, and the stack is drained batch by batch: the program frees more than it uses
 * again soon, and then blocks should come back in the order of addresses, from the fullest slabs,
 * not in the order of their frees. Of longer blocks few share a page, and slabs take and give them
 * less cheaply.
 *
 * In the bitmaps its blocks count as handed out; those that a program freed carry the mark. Each is
 * checked to be the start of a block of the class when it comes in.
 */
#ifndef SLAB_TRANSFER_H
#define SLAB_TRANSFER_H

#include "slab/bin.h"

/* Takes in the first blocks, as many as there is room for, and returns how many: into the cache of
 * the thread's shard, or, if that is full, of theirs. Aborts if one of them is not the start of a
 * block of the class. */
unsigned transfer_put(unsigned shard, unsigned size_class, void *const *blocks, unsigned count);

/* Somebody asks the bin for blocks: those that come are stacked again. */
ALWAYS_INLINE void transfer_ask(struct bin *bin)
{
    if (ATOMIC_LOAD_RELAXED(&bin->stack_freed))
        ATOMIC_STORE_RELAXED(&bin->stack_freed, 0);
}

/* Takes up to `count` blocks off the bin's stack, the latest ones; returns how many. Lock of the
 * bin held. */
unsigned transfer_take(struct bin *bin, unsigned size_class, void **blocks, unsigned count);

/* Takes up to `count` blocks out of the cache of a shard other than this one. */
unsigned transfer_take_from_others(
    unsigned shard, unsigned size_class, void **blocks, unsigned count);

/* A bit a shard for each class: its bin may have stacked blocks, or keep empty slabs. Written with
 * the lock of the bin, read without. */
extern uint64_t transfer_stocked[CLASS_COUNT];

/* Sets the bit, or clears it, after the bin's blocks or slabs have changed. Its lock is held. */
void transfer_note_stock(const struct bin *bin, unsigned shard, unsigned size_class);

/* True if a transfer cache of the class, of any shard, holds the block. */
SLOW_PATH bool transfer_holds(unsigned size_class, const void *block);

/* Blocks in the transfer caches of the class, of all shards. Any thread. */
unsigned transfer_blocks(unsigned size_class);

/* True if the cache holds blocks. */
bool transfer_may(unsigned cache);

/* The hand comes by (reclaim/engine.h): steps will drain the blocks that nobody took since it last
 * did. Arms the purge if many are left. */
void transfer_look(unsigned cache);

/* Drains a few of these; true: there are more. */
bool transfer_step(unsigned cache);

/* Returns blocks to the bins, cache after cache, until these are `most` or a few more; true: there
 * were some. */
bool transfer_drain(size_t most);

/* For the exit of the process: from now on the caches take nothing in. */
void transfer_close(void);

#endif
