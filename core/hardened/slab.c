/* Slabs between guard pages.
 *
 *     base                                                      base + units
 *     | block 0 | block 1 | ...                | (rest) | closed |
 *
 * Pages of a superslab that belong to no slab are closed (fence.h); a slab opens its blocks, and
 * its last page stays closed. So a write that runs on faults there, at most a slab's length later,
 * and an ended slab cannot be touched.
 */
#include <string.h>

#include "base/poison.h"
#include "hardened/fence.h"
#include "hardened/front.h"
#include "os/os.h"

/* If a page is as long as a unit, or beside the only block, there is none to spare. */
unsigned hardened_slab_blocks(unsigned size_class)
{
    const struct size_class *layout = &size_classes[size_class];
    size_t page = os_page_size();
    if (page == UNIT_SIZE || size_class_is_single(size_class))
        return layout->blocks;
    size_t most = (layout->units * UNIT_SIZE - page) / layout->size;
    return (unsigned)size_min(size_max(most, 1), layout->blocks);
}

size_t hardened_record_bytes(unsigned blocks)
{
    return 2 * sizeof(uint64_t) + blocks * sizeof(uint32_t); /* secret, generator and words */
}

static size_t open_bytes(const struct slab *slab)
{
    return round_up(slab->blocks * (size_t)size_classes[slab->size_class].size, os_page_size());
}

static bool open_slab(struct slab *slab)
{
    enum fence fence = slab->superslab->fence;
    size_t bytes = open_bytes(slab);
    /* A large block is opened by each of its owners. */
    if (fence != FENCE_NONE && size_class_is_single(slab->size_class))
        return slab->clean = slab->clean || large_renew(slab);
    slab->clean = true;
    return fence_open(fence, slab->base, bytes);
}

bool hardened_open_slab(struct slab *slab)
{
    bool opened = open_slab(slab);
    if (LIKELY(opened))
        word_draw_secrets(slab);
    return opened;
}

bool hardened_close_slab(const struct slab *slab)
{
    enum fence fence = slab->superslab->fence;
    if (size_class_is_single(slab->size_class))
        return large_close(slab);
    /* If it cannot be closed, fence_close may clear it. The next owner poisons it. */
    unpoison(slab->base, open_bytes(slab));
    return fence != FENCE_NONE && fence_close(fence, slab->base, open_bytes(slab));
}

/* ---- Questions ------------------------------------------------------------------------------- */

bool hardened_is_free(const struct slab *slab, unsigned index)
{
    return word_state(ATOMIC_LOAD_ACQUIRE(slab_word((struct slab *)slab, index))) != WORD_LIVE;
}

const void *hardened_sample(const struct slab *slab)
{
    return word_sample((struct slab *)slab);
}

void *hardened_address(const void *pointer)
{
    return tags_strip(pointer);
}

void hardened_look_anywhere(bool begin)
{
    if (begin)
        tags_ignore();
    else
        tags_heed();
}

void hardened_refuse(const struct slab *slab, const void *address, const char *call)
{
    unsigned index = slab_index_at(slab, address);
    /* The block may have started elsewhere before (large.h). */
    if (size_class_is_single(slab->size_class) && hardened_is_free(slab, 0))
        fatal_pointer(call, DEFECT_DOUBLE_FREE, address, NULL, 0);
    if (index < slab->blocks)
        fatal_pointer(
            call, DEFECT_INTERIOR, address, tags_like(slab_block(slab, index), address),
            word_asked(slab, index));
}
