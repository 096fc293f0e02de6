/* See fenced.h. */
#include "slab/fenced.h"

#include <string.h>

#include "base/poison.h"
#include "map/fence.h"
#include "os/os.h"
#include "slab/large.h"
#include "span/page_heap.h"

unsigned fenced_part(unsigned shard)
{
    if (UNLIKELY(slab_shard_is_hardened(shard)))
        return page_heap_fenced();
    return UNLIKELY(slab_shard_is_sampled(shard)) ? 0 : shard;
}

/* With pages as long as a unit there is none to spare. */
unsigned fenced_blocks(unsigned size_class, unsigned shard)
{
    const struct size_class *layout = &size_classes[size_class];
    if (LIKELY(!slab_shard_is_hardened(shard)) || size_class_is_single(size_class))
        return layout->blocks;
    size_t page = os_page_size();
    if (page == UNIT_SIZE)
        return layout->blocks;
    size_t most = (layout->units * UNIT_SIZE - page) / layout->size;
    return (unsigned)size_min(most, layout->blocks);
}

static size_t open_bytes(const struct slab *slab)
{
    return round_up(slab->blocks * (size_t)size_classes[slab->size_class].size, os_page_size());
}

bool fenced_open(struct slab *slab)
{
    enum fence fence = slab->superslab->fence;
    size_t bytes = open_bytes(slab);
    /* Each of its owners opens a large block. */
    if (fence != FENCE_NONE && size_class_is_single(slab->size_class))
        return slab->clean = slab->clean || large_renew(slab);
    if (UNLIKELY(fence == FENCE_NONE) && !slab->clean && !os_purge(slab->base, bytes))
        memset(slab->base, 0, bytes);
    slab->clean = true;
    return fence_open(fence, slab->base, bytes);
}

bool fenced_close(const struct slab *slab)
{
    enum fence fence = slab->superslab->fence;
    if (size_class_is_single(slab->size_class))
        return large_close(slab);
    /* What cannot be closed may have to be cleared. Its next owner poisons it. */
    unpoison(slab->base, open_bytes(slab));
    return fence != FENCE_NONE && fence_close(fence, slab->base, open_bytes(slab));
}
