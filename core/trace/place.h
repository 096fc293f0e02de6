/* Sampled blocks: they lie in slabs of a shard of their own, with a pointer for each block.
 *
 * No lock of its own. The owner of a block owns its pointer.
 */
#ifndef TRACE_PLACE_H
#define TRACE_PLACE_H

#include "slab/slab.h"

/* A block for the sample, in place of one of that class, zeroed if `zero`. NULL: no memory. */
void *place_take(void *sample, unsigned size_class, size_t size, size_t alignment, bool zero);

/* The sample of the block. Aborts, naming `call`, if the block is free. */
void *place_look(struct slab *slab, const void *block, const char *call);

/* place_end ends the sample and returns it; place_put gives the block back. In between nobody owns
 * it. */
void *place_end(struct slab *slab, const void *block);
void place_put(struct slab *slab, void *block);

#endif
