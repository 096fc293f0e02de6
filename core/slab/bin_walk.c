/* Walks the slabs of a bin by the page map, which knows full ones, too, that are on no list; the
 * repair in a child of fork does so. */
#include <string.h>

#include "slab/shard.h"
#include "slab/transfer.h"

/* The bin's next slab in the superslab, from `*unit` on; NULL: none. */
static struct slab *next_slab(
    struct superslab *superslab, unsigned *unit, unsigned shard, unsigned size_class)
{
    while (*unit < SUPERSLAB_UNITS) {
        struct slab *slab = ATOMIC_LOAD_ACQUIRE(&superslab->slab_of_unit[*unit]);
        char *start = superslab_address(superslab, *unit);
        ++*unit;
        if (slab && slab->size_class == size_class && slab->shard == shard && slab->attached &&
            round_down((uintptr_t)slab->base, UNIT_SIZE) == (uintptr_t)start)
            return slab;
    }
    return NULL;
}

void bin_for_each_slab(
    unsigned shard, unsigned size_class, void (*act)(struct bin *bin, struct slab *slab))
{
    for (struct region *region = NULL; (region = page_map_next(region)) != NULL;) {
        struct slab *slab;
        if (region->kind != REGION_SUPERSLAB)
            continue;
        for (unsigned unit = 0;
             (slab = next_slab((struct superslab *)region, &unit, shard, size_class)) != NULL;)
            act(bin_of(shard, size_class), slab);
    }
}

static void reattach(struct bin *bin, struct slab *slab)
{
    slab_repair(slab);
    slab->by_fullness.link = NULL;
    bin_relist(bin, slab);
    COUNTER_ADD(&bin->slab_count, 1);
    COUNTER_ADD(&bin->free_blocks, slab->free_blocks);
}

void bin_repair(unsigned number)
{
    struct bin *bin = bin_at(number);
    memset(bin->slabs, 0, sizeof bin->slabs);
    bin->swept.first = NULL;
    bin->newest = NULL;
    ATOMIC_STORE_RELAXED(&bin->sweeping, SWEEP_NONE);
    ATOMIC_STORE_RELAXED(&bin->slab_count, 0);
    ATOMIC_STORE_RELAXED(&bin->kept, 0);
    ATOMIC_STORE_RELAXED(&bin->free_blocks, 0);
    bin_for_each_slab(number / CLASS_COUNT, number % CLASS_COUNT, reattach);
    bin->free_swept = bin->free_unused = bin_listed_blocks(bin);
    transfer_note_stock(bin, number / CLASS_COUNT, number % CLASS_COUNT);
}
