/* The end of waiting, the last check of free memory when the program ends, and the walkers of
 * tests. */
#include "base/assert.h"
#include "hardened/big.h"
#include "hardened/front.h"
#include "hardened/hold.h"
#include "slab/shard.h"
#include "thread/registry.h"

/* How many bytes may still be checked. The thread that ends the program only. */
static size_t look_left;

/* Checks free blocks that were handed out before; above the watermark there are none. */
static void look_at_slab(struct bin *bin, struct slab *slab)
{
    size_t size = size_classes[slab->size_class].size;
    for (unsigned i = 0; i < slab->watermark && look_left >= size; i++) {
        if (!bitmap_test(slab->free, i))
            continue;
        word_check_zero(slab, slab_block(slab, i), "free");
        look_left -= size;
    }
    (void)bin;
}

/* Large blocks are checked while they wait, or are closed (large.h). */
static void look_at_bins(size_t bytes_max)
{
    look_left = bytes_max;
    for (unsigned size_class = 1; size_class <= MID_CLASS_LAST; size_class++) {
        struct bin *bin = bin_of(HARDENED_SHARD, size_class);
        if (HAKMEM_SANITIZE_ADDRESS || !ATOMIC_LOAD_RELAXED(&bin->slab_count))
            continue;
        lock_acquire(&bin->lock);
        bin_for_each_slab(HARDENED_SHARD, size_class, look_at_slab);
        lock_release(&bin->lock);
    }
}

void hardened_release(void)
{
    hardened_flush();
    large_release();
    big_fenced_release();
}

void hardened_stop(void)
{
    /* Free blocks may be many, and without memory. */
    static const size_t look_max = 16 * MIB;
    /* Before the thread's blocks go home: a slab that becomes empty then is gone. */
    struct heap *heap = heap_enter();
    look_at_bins(look_max);
    large_look();
    if (heap)
        heap_leave(heap);
    hardened_flush();
}

/* ---- Walkers --------------------------------------------------------------------------------- */

/* No free block of the bin is live, and no block above the watermark was handed out. */
void hardened_check_slab(const struct slab *slab)
{
    for (unsigned i = 0; i < slab->blocks; i++) {
        uint32_t word = ATOMIC_LOAD_RELAXED(slab_word((struct slab *)slab, i));
        ASSERT(word_state(word) != WORD_LIVE || !bitmap_test(slab->free, i));
        ASSERT(word == WORD_UNUSED || i < slab->watermark);
        (void)word; /* only asserted on */
    }
}

/* Checks the blocks that wait in holds and in quarantine. */
void hardened_check(void)
{
    unsigned held[HOLD_CLASSES] = {0};
    for (const struct heap *heap = heap_first(); heap; heap = heap->next)
        hold_check(heap, held);
    large_check();
    big_fenced_check();
}
