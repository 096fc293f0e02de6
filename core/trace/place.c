/* See place.h. */
#include "trace/place.h"

#include "os/fatal.h"
#include "slab/shard.h"
#include "trace/due.h"
#include "trace/spare.h"

/* The class that a sample is taken from in place of a block of that class: one of few, so that
 * samples share slabs, with blocks at multiples of their size. Blocks that have a slab each share
 * none. */
static unsigned class_for(unsigned size_class, size_t alignment)
{
    enum { SHORTEST = 256 };
    if (size_class_is_single(size_class))
        return size_class;
    size_t length = SHORTEST;
    while (length < alignment || length < size_classes[size_class].size)
        length *= 2;
    return size_class_of(length);
}

static void *take_sampled(unsigned size_class, size_t alignment)
{
    unsigned shard = slab_samples_shard, units = (unsigned)(alignment >> UNIT_SHIFT);
    void *block = units > 1 ? NULL : spare_take(size_class);
    for (enum refill cost = REFILL_USED; !block && cost <= REFILL_MAP; cost++)
        if (bin_refill(shard, size_class, &block, 1, units, cost))
            break;
    return block;
}

/* Marks the block as live, and clears it if asked to. */
static void start_block(struct slab *slab, void *block, size_t size, bool zero)
{
    unsigned state = BLOCK_FREED;
    if (size_class_is_long(slab->size_class))
        state = superslab_sample_block(block);
    if (zero)
        slab_clear(block, size, state);
}

void *place_take(void *sample, unsigned size_class, size_t size, size_t alignment, bool zero)
{
    void *block = take_sampled(class_for(size_class, alignment), alignment);
    if (!block)
        return NULL;
    struct slab *slab = slab_lookup(block);
    ATOMIC_STORE_RELEASE(slab_sample(slab, slab_index(slab, block, "malloc")), sample);
    start_block(slab, block, size, zero);
    return block;
}

void *place_look(struct slab *slab, const void *block, const char *call)
{
    void *sample = ATOMIC_LOAD_ACQUIRE(slab_sample(slab, slab_index(slab, block, call)));
    if (UNLIKELY(!sample))
        fatal_pointer(call, DEFECT_DOUBLE_FREE, block, NULL, 0);
    return sample;
}

void *place_end(struct slab *slab, const void *block)
{
    void **place = slab_sample(slab, slab_index(slab, block, "free"));
    void *sample = __atomic_exchange_n(place, NULL, __ATOMIC_ACQ_REL);
    if (UNLIKELY(!sample))
        fatal_pointer("free", DEFECT_DOUBLE_FREE, block, NULL, 0);
    return sample;
}

void place_put(struct slab *slab, void *block)
{
    if (size_class_is_long(slab->size_class))
        superslab_end_block(block);
    else
        *(mark *)block = class_map_mark(class_map_newest()->classes);
    if (!due_mean() || !spare_put(slab->size_class, block))
        bin_flush(slab->shard, slab->size_class, &block, 1);
}
