/* Counts clean grains of slabs (slab.h), and zeroes blocks: of long ones only the parts that may
 * not be zero. */
#include <string.h>

#include "base/pressure.h"
#include "base/sparse.h"
#include "base/tuning.h"
#include "slab/slab.h"
#include "span/page_heap.h"

/* ---- Clean grains ---------------------------------------------------------------------------- */

static size_t clean_bytes; /* atomic relaxed, any thread */

size_t slab_clean_bytes(void)
{
    return ATOMIC_LOAD_RELAXED(&clean_bytes);
}

void slab_add_clean(struct slab *slab, uint64_t grains)
{
    uint64_t more = grains & ~slab->clean_grains;
    slab->clean_grains |= more;
    ATOMIC_ADD_RELAXED(&clean_bytes, bits_count(more) * slab_grain(slab));
}

void slab_take_clean(struct slab *slab, uint64_t grains)
{
    grains &= slab->clean_grains;
    slab->clean_grains &= ~grains;
    if (grains)
        ATOMIC_ADD_RELAXED(&clean_bytes, -(bits_count(grains) * slab_grain(slab)));
}

void slab_touch(struct slab *slab, unsigned first, unsigned count)
{
    if (!slab->clean_grains)
        return;
    size_t size = size_classes[slab->size_class].size, grain = slab_grain(slab);
    size_t low = first * size / grain, end = ((first + count) * size + grain - 1) / grain;
    slab_take_clean(slab, bitmap_word_mask(0, (unsigned)low, (unsigned)(end - low)));
}

void slab_count_clean(struct slab *slab, const struct unit_run *taken)
{
    size_t size = taken->run.units * UNIT_SIZE, grain = slab_grain(slab);
    uint64_t grains = 0;
    if (slab->blocks == 1) {
        pressure_taken(size - taken->dirty_pages * PAGE_SIZE, false);
        return;
    }
    for (size_t at = 0; at < size; at += PAGE_SIZE)
        if (!superslab_is_dirty(slab->superslab, slab->base + at))
            grains |= (uint64_t)1 << at / grain;
    slab_add_clean(slab, grains);
}

/* ---- Zeroing --------------------------------------------------------------------------------- */

/* Zeroes a piece of a block of that size, rounded up to words. Untouched pages of a large block
 * stay so: an ended slab marks whole blocks as dirty, even if little of them was touched. */
static SLOW_PATH void clear_piece(void *start, size_t piece, size_t size)
{
    if (size <= MID_MAX)
        memset(start, 0, piece);
    else
        sparse_clear(start, piece);
}

/* Zeroes the pages of the block that were dirty when its slab was made. */
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

void slab_clear(void *block, size_t size, unsigned state)
{
    const struct slab *slab = slab_lookup(block);
    bool fresh = state == BLOCK_UNUSED && size > CLEARED_WHOLE;
    if (fresh && slab->clean)
        return;
    if (fresh)
        clear_dirty_pages(slab, block, size);
    else
        clear_piece(block, round_up(size, sizeof(uint64_t)), size);
}
