/* See large.h. */
#include "slab/large.h"

#include <string.h>

#include "base/bytes.h"
#include "map/fence.h"
#include "os/os.h"
#include "slab/bin.h"
#include "span/limbo.h"

static struct limbo limbo;

static const size_t waiting_max = 64 * MIB;

/* Its last page stays closed. */
unsigned large_class(size_t size, size_t alignment)
{
    if (size > LARGE_MAX || alignment > LARGE_MAX)
        return CLASS_NONE;
    size_t page = os_page_size(), bytes = round_up(size_max(size, 1), page) + page;
    return bytes > LARGE_MAX ? (unsigned)CLASS_NONE : size_class_single(bytes);
}

static char *start_of(const struct slab *slab)
{
    return (char *)round_down((uintptr_t)slab->base, UNIT_SIZE);
}

/* Where the block ends that is so long; and the open pages, both from the start of the slab. */
static size_t end_of(const struct slab *slab, size_t size)
{
    return (size_t)(slab->base - start_of(slab)) + size_max(size, 1);
}

static size_t open_end(const struct slab *slab, size_t size)
{
    return round_up(end_of(slab, size), os_page_size());
}

static size_t slab_end(const struct slab *slab)
{
    return size_classes[slab->size_class].size;
}

void *large_open(struct slab *slab, size_t size, size_t alignment)
{
    size_t page = os_page_size(), length = round_up(size_max(size, 1), page);
    alignment = size_max(alignment, MIN_ALIGNMENT);
    size_t offset = alignment > page ? 0 : length - round_up(size_max(size, 1), alignment);
    if (!fence_open(slab->superslab->fence, start_of(slab), length))
        return NULL;
    slab->left_open = false;
    return slab->base = start_of(slab) + offset;
}

bool large_is_whole(const struct slab *slab, size_t size)
{
    const char *start = start_of(slab);
    return bytes_rest_is_zero(start, slab->base) &&
           bytes_rest_is_zero(start + end_of(slab, size), start + open_end(slab, size));
}

bool large_resize(struct slab *slab, size_t before, size_t size)
{
    enum fence fence = slab->superslab->fence;
    size_t open = open_end(slab, before), wanted = open_end(slab, size);
    char *start = start_of(slab);
    if (wanted > slab_end(slab) - os_page_size())
        return false;
    if (wanted > open)
        return fence_open(fence, start + open, wanted - open);
    if (size < before)
        memset(start + end_of(slab, size), 0, wanted - end_of(slab, size));
    if (wanted < open)
        fence_close(fence, start + wanted, open - wanted);
    return true;
}

/* It is its bin's again. */
static void send_home(void *waiting)
{
    struct slab *slab = waiting;
    void *block = slab->base;
    limbo_tell(&limbo, slab_end(slab));
    bin_flush(slab->shard, slab->size_class, &block, 1);
}

void large_release(size_t bytes_max)
{
    void *oldest;
    while ((oldest = limbo_take(&limbo, bytes_max)) != NULL)
        send_home(oldest);
}

void large_end(struct slab *slab, size_t size)
{
    slab->left_open = !fence_close(slab->superslab->fence, start_of(slab), open_end(slab, size));
    void *oldest = limbo_put(&limbo, slab, slab_end(slab));
    if (oldest)
        send_home(oldest);
    large_release(waiting_max);
}
