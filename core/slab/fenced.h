/* Slabs of the hardened preset between pages that nobody can touch.
 *
 *     base                                                      base + units
 *     | block 0 | block 1 | ...                | (rest) | closed |
 *
 * What is in no slab of their superslabs is closed (map/fence.h); a slab opens its blocks, and the
 * last page stays as it was. So whoever runs beyond them ends there, at the latest after the length
 * of a slab, and a slab that is gone cannot be touched.
 */
#ifndef SLAB_FENCED_H
#define SLAB_FENCED_H

#include "slab/slab.h"

/* The part of the page heap that a shard's slabs come from. */
unsigned fenced_part(unsigned shard);

/* So many blocks has a slab of the class: of the hardened preset there may be fewer. */
unsigned fenced_blocks(unsigned size_class, unsigned shard);

/* Opens a new hardened slab, of which all then reads as zero; false: the system refuses. */
bool fenced_open(struct slab *slab);

/* Closes what it has opened, and gives the memory back; false: it is open still. */
bool fenced_close(const struct slab *slab);

#endif
