/* Blocks above 32 KiB of the hardened library: each has a slab of its own, of which only the
 * block's pages are open.
 *
 *     unit                                                                  the slab's end
 *     | zeros | block ..................... | closed ............................ |
 *               ^ slab->base                ^ a page's start
 *
 * The block ends where the page does, as far as its alignment allows: a write behind it faults. The
 * guard is the rest of the slab, which large_open leaves closed, a page at least: behind 100 KiB in
 * a slab of 128 KiB it is seven pages of 4 KiB. The bytes before the block on its first page are
 * zero, which is checked. Below is the closed end of another slab. A freed block is closed, so that
 * nobody can use it, and waits in quarantine.
 *
 * While a program frees and takes many such blocks, those of up to 512 KiB are cleared instead,
 * since their next owner would pay more for fresh pages: such a block waits behind at most 1 MiB of
 * others, reads as zero, and is checked when it is handed out again, or when the program ends. A
 * shorter next block ends at the same place: up to 32 KiB before it are zero. A block that the
 * system refuses to close waits there, too.
 *
 * Without a fence, a freed block has no memory. Its first page is checked when it is handed out
 * again; writes to its other pages are gone then.
 *
 * All but large_class are for the owner of the block.
 */
#ifndef HARDENED_LARGE_H
#define HARDENED_LARGE_H

#include "slab/slab.h"

/* The class of the slab for such a block; CLASS_NONE: it has to be big. */
unsigned large_class(size_t size, size_t alignment);

/* For a new slab whose pages the system would not close before: closes them, or opens them all.
 * False: it refuses both. */
bool large_renew(struct slab *slab);

/* Opens a slab's block of `size` bytes at a multiple of `alignment`, at most the slab's; it reads
 * as zero. NULL: the system refuses. */
void *large_open(struct slab *slab, size_t size, size_t alignment);

/* Whether the bytes beside the block of `size` bytes, on its pages, are unwritten. */
bool large_is_whole(const struct slab *slab, size_t size);

/* Resizes the block in place; false: that is not possible. */
bool large_resize(struct slab *slab, size_t before, size_t size);

/* Closes or clears the freed block of `size` bytes, and lets it wait. */
void large_end(struct slab *slab, size_t size);

/* Closes the open pages of the free block when its slab ends; false: they are still open. */
bool large_close(const struct slab *slab);

/* Ends the waiting of all blocks. To be called without locks. */
void large_release(void);

/* Ends the waiting of all cleared blocks; aborts if one was written to. */
void large_look(void);

/* Debug walker over the blocks that wait; returns how many. */
unsigned large_check(void);

#endif
