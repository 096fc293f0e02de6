/* Where sampled blocks lie: in slabs of a shard of their own, with a pointer for each block.
 *
 * No lock of its own. Who has a block has its pointer.
 */
#ifndef TRACE_PLACE_H
#define TRACE_PLACE_H

#include "slab/slab.h"

/* A block in place of one of that class, for the sample, zeroed if `zero`. NULL: no memory. */
void *place_take(void *sample, unsigned size_class, size_t size, size_t alignment, bool zero);

/* The sample that the block is; aborts when it is free, naming `call`. */
void *place_look(struct slab *slab, const void *block, const char *call);

/* The same, which ends; then the block goes back. Between the two the block is nobody's. */
void *place_end(struct slab *slab, const void *block);
void place_put(struct slab *slab, void *block);

#endif
