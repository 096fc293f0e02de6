/* Depots: free blocks on their way from one magazine to another.
 *
 * What a magazine flushes goes to the depot of its class, and a refill takes from there first, by
 * copying pointers: slabs and their bitmaps are not touched. So a burst that is longer than a
 * magazine, and blocks that one thread allocates and another frees, cost little more than hits.
 *
 *     magazines  <->  depot of the class, a stack  <->  bins of the shards
 *                     bounded in bytes; spills when full, when memory has to grow, what lay unused
 *                     since the last tick of the purge, and when the process exits
 *
 * A depot serves all shards. In the bitmaps its blocks count as handed out; those that a program
 * freed carry the mark. That each is the start of a block of the class is checked when it comes in.
 *
 * One lock a depot, held while pointers are copied.
 */
#ifndef SLAB_DEPOT_H
#define SLAB_DEPOT_H

#include "os/lock.h"

/* Takes blocks in, of these the first; returns how many. Aborts when one of them is not the start
 * of a block of the class. */
unsigned depot_put(unsigned class, void *const *blocks, unsigned count);

/* Takes up to `count` blocks out, those that came last; returns how many. */
unsigned depot_take(unsigned class, void **blocks, unsigned count);

/* True when the depot of the class holds the block. */
SLOW_PATH bool depot_holds(unsigned class, const void *block);

/* Blocks in the depot of the class. Any thread. */
unsigned depot_blocks(unsigned class);

/* A tick of the purge: what nobody took since the last one is to be spilled. */
void depot_tick(void);

/* Spills some of that; true when there was any. */
bool depot_step(void);

/* Returns everything to the bins; true when there was anything. */
bool depot_spill(void);

/* From now on nothing comes in: for the exit of the process. */
void depot_close(void);

struct lock *depot_lock(unsigned class);

/* Debug walker over all depots. */
void depot_check_all(void);

#endif
