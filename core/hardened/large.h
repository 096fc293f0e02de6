/* Large blocks of the hardened preset: each has a slab of its own, of which no more is open than
 * its pages.
 *
 *     unit                                                                  the slab's end
 *     | zeros | block ..................... | closed ............................ |
 *               ^ slab->base                ^ a page's start
 *
 * The block ends where the page does, as far as its alignment allows: who writes behind it faults,
 * and what lies before it on its first page is zero, which is looked at. Below is the closed end of
 * another slab. A freed block is closed, so that nobody can use it, and waits in limbo.
 *
 * While a program frees many at once and takes as many, those of up to 512 KiB are cleared instead,
 * since their next owner would pay more for fresh pages: such a block waits behind at most 1 MiB of
 * others, reads as zero, and is looked at when it is handed out again, or the program ends. A
 * shorter one then ends where that did: up to 32 KiB before it are zero. One that the system
 * refuses to close waits there, too.
 *
 * Where there is no fence, a freed block has no memory. Its first page is looked at when it is
 * handed out again; what was written to others is gone then.
 *
 * All but large_class are for who has the block.
 */
#ifndef HARDENED_LARGE_H
#define HARDENED_LARGE_H

#include "slab/slab.h"

/* The class of the slab for such a block; CLASS_NONE: it has to be big. */
unsigned large_class(size_t size, size_t alignment);

/* For a new slab of pages that the system would not close when it was asked before; false: it
 * refuses still. */
bool large_renew(struct slab *slab);

/* Opens a slab's block, so long and at a multiple of `alignment`, at most that of the slab; it
 * reads as zero. NULL: the system refuses. */
void *large_open(struct slab *slab, size_t size, size_t alignment);

/* Whether nobody has written beside the block, of `size` bytes, on its pages. */
bool large_is_whole(const struct slab *slab, size_t size);

/* Makes it longer or shorter where it is; false: that cannot be. */
bool large_resize(struct slab *slab, size_t before, size_t size);

/* Closes or clears the block of `size` bytes, which is freed, and lets it wait. */
void large_end(struct slab *slab, size_t size);

/* Closes what is open of the free block of a slab that ends; false: it is open still. */
bool large_close(const struct slab *slab);

/* Ends the waiting of all but so many bytes. To be called without locks. */
void large_release(size_t bytes_max);

/* The same of all that were cleared; aborts where somebody has written to one. */
void large_look(void);

/* Debug walker over those that wait; returns how many. */
unsigned large_check(void);

#endif
