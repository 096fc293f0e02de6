/* Zeroing of blocks, by slab.h: of what may be other than zero, and nothing else. */
#include <string.h>

#include "base/sparse.h"
#include "slab/slab.h"

/* Zeroes a piece of a block of that size, rounded up to words. Pages of a large one that its last
 * owner left untouched stay so: a slab that ends tells only of whole blocks that they are dirty. */
static SLOW_PATH void clear_piece(void *start, size_t piece, size_t size)
{
    if (size <= MID_MAX)
        memset(start, 0, piece);
    else
        sparse_clear(start, piece);
}

/* The pages of the block that were dirty when its slab was made. */
static void clear_dirty_pages(const struct slab *slab, char *start, size_t size)
{
    char *end = start + round_up(size, sizeof(uint64_t));
    for (char *next; start < end; start = next) {
        next = (char *)round_down((uintptr_t)start + PAGE_SIZE, PAGE_SIZE);
        next = next < end ? next : end;
        if (superslab_is_dirty(slab->superslab, start))
            clear_piece(start, (size_t)(next - start), size);
    }
}

void slab_clear_block(void **block, size_t size)
{
    const struct slab *slab = slab_lookup(block);
    /* A block that was freed carries the mark of that, if its page was not purged since. */
    if (!block[0] && !ATOMIC_LOAD_RELAXED(&slab->purged_once)) {
        if (!slab->clean)
            clear_dirty_pages(slab, (char *)block, size);
    } else {
        memset(block, 0, size);
    }
}

void slab_clear_long(void *block, size_t size, unsigned state)
{
    const struct slab *slab = slab_lookup(block);
    if (state == BLOCK_UNUSED && slab->clean)
        return;
    if (state == BLOCK_UNUSED && !ATOMIC_LOAD_RELAXED(&slab->purged_once))
        clear_dirty_pages(slab, block, size);
    else
        clear_piece(block, round_up(size, sizeof(uint64_t)), size);
}
