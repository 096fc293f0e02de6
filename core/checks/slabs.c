/* See checks.h. */
#include <string.h>

#include "base/assert.h"
#include "base/tuning.h"
#include "checks/checks.h"
#include "slab/shard.h"
#include "slab/transfer.h"

/* ---- Slabs and bins -------------------------------------------------------------------------- */

void slab_check(const struct slab *slab)
{
    ASSERT(slab->blocks == slab_blocks_of(slab->size_class));
    ASSERT(slab->free_blocks == bitmap_count_range(slab->free, 0, slab->blocks));
    ASSERT(slab->watermark <= slab->blocks);
    ASSERT(
        !slab->free_blocks ||
        bitmap_find(slab->free, 0, slab->blocks, true) >= slab->first_word * 64u);
    ASSERT(bitmap_find(slab->free, slab->watermark, slab->blocks, false) == slab->blocks);
    ASSERT(slab_lookup(slab->base) == slab);
    ASSERT(
        class_map.limit == 0 || class_map_get(slab->base) == slab->size_class ||
        class_map_get(slab->base) == CLASS_NONE);
    for (unsigned i = 0; i < slab->blocks && size_class_is_long(slab->size_class); i++) {
        const char *block = slab_block(slab, i);
        unsigned state = ATOMIC_LOAD_RELAXED(superslab_state(slab->superslab, block));
        ASSERT(
            state == BLOCK_UNUSED || state == BLOCK_FREED ||
            (state == BLOCK_SAMPLED && slab_is_sampled(slab)) ||
            (superslab_is_live(state, block, slab->size_class) && !bitmap_test(slab->free, i)));
        ASSERT(i < slab->watermark || state == BLOCK_UNUSED);
        (void)state; /* only asserted on */
    }
    hardened_check_slab(slab);
}

/* Counts of the bin that the walker is in. */
static struct {
    uint64_t slabs, free_blocks, listed;
} found;

static void check_slab(struct bin *bin, struct slab *slab)
{
    slab_check(slab);
    bool listed = list_contains(&slab->by_fullness);
    ASSERT(listed == (slab->free_blocks > 0));
    ASSERT(!listed || slab->fullness == bin_fullness(slab));
    found.slabs++;
    found.free_blocks += slab->free_blocks;
    found.listed += listed;
    (void)bin;
}

/* Returns how many slabs of the bin are on the list. */
static uint32_t check_list(
    const struct list *list, unsigned level, unsigned shard, unsigned size_class)
{
    uint32_t count = 0;
    for (const struct list_node *node = list->first; node; node = node->next, count++) {
        const struct slab *slab = CONTAINER_OF(node, struct slab, by_fullness);
        ASSERT(slab->size_class == size_class && slab->shard == shard && slab->attached);
        ASSERT(level == FULLNESS_EMPTY + 1 || slab->fullness == level);
        (void)slab;
    }
    return count;
}

static void check_bin(struct bin *bin, unsigned shard, unsigned size_class)
{
    uint32_t listed = 0, empty = 0;
    for (unsigned level = 0; level <= FULLNESS_EMPTY; level++)
        listed += empty = check_list(&bin->slabs[level], level, shard, size_class);
    listed += check_list(&bin->swept, FULLNESS_EMPTY + 1, shard, size_class);
    ASSERT(bin->kept == empty && bin->kept_unused <= bin->kept);
    ASSERT(
        !(bin->kept || bin->stacked) || shard >= SHARD_MAX ||
        transfer_stocked[size_class] >> shard & 1);
    ASSERT(bin->free_swept <= bin_listed_blocks(bin));
    ASSERT(bin->free_unused <= bin_listed_blocks(bin));
    memset(&found, 0, sizeof found);
    if (bin->slab_count)
        bin_for_each_slab(shard, size_class, check_slab);
    ASSERT(found.slabs == bin->slab_count && found.free_blocks == bin->free_blocks);
    ASSERT(found.listed == listed);
    (void)listed; /* only asserted on */
    (void)empty;
}

void bin_check_all(void)
{
    for (unsigned number = 0; number < shard_count() * CLASS_COUNT; number++) {
        struct bin *bin = bin_at(number);
        lock_acquire(&bin->lock);
        check_bin(bin, number / CLASS_COUNT, number % CLASS_COUNT);
        lock_release(&bin->lock);
    }
}

/* ---- Transfer caches --------------------------------------------------------------------------
 */

void transfer_check_all(void)
{
    for (unsigned cache = 0; cache < shard_count() * CLASS_COUNT; cache++) {
        struct bin *bin = bin_at(cache);
        lock_acquire(&bin->lock);
        ASSERT(bin->stacked <= bin->stack_slots && bin->stack_slots <= TRANSFER_BLOCKS);
        ASSERT(bin->stack_unused <= bin->stacked);
        for (unsigned i = 0; i < bin->stacked; i++) {
            const struct slab *slab = slab_lookup(bin->stack[i]);
            ASSERT(slab && slab->size_class == cache % CLASS_COUNT);
            /* Twins are for the even shards and for the odd ones. */
            unsigned twin = slab->size_class - (slab->size_class > SIZE_COUNT ? SIZE_COUNT : 0u);
            ASSERT(size_class_for_shard(twin, cache / CLASS_COUNT) == slab->size_class);
            (void)twin; /* only asserted on */
        }
        lock_release(&bin->lock);
    }
}
