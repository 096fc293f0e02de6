/* See big.h. */
#include "hardened/big.h"

#include <string.h>

#include "base/assert.h"
#include "base/poison.h"
#include "base/pressure.h"
#include "base/sparse.h"
#include "hardened.h"
#include "hardened/bytes.h"
#include "hardened/fence.h"
#include "hardened/quarantine.h"
#include "map/metadata.h"
#include "os/fatal.h"
#include "os/os.h"
#include "span/big_cache.h"
#include "span/huge.h"

/* Mappings that a fence by rights at an end costs. */
enum { FENCE_MAPPINGS = 2 };

/* Blocks that the system would not unmap, linked by `by_size.next`; atomic, any thread: release on
 * push pairs with acquire on taking all. */
static struct list_node *refused;

static char *first_page_of(const struct big *big)
{
    return (char *)round_down((uintptr_t)big->region.base, os_page_size());
}

/* The end of the pages of a block of that length. */
static char *end_of_pages(const struct big *big, size_t size)
{
    return (char *)round_up((uintptr_t)big->region.base + size, os_page_size());
}

/* ---- Making ---------------------------------------------------------------------------------- */

struct big *big_fenced_make(unsigned part, size_t size, size_t alignment)
{
    size_t page = os_page_size(), length = round_up(size_max(size, 1), page);
    /* No other block may start in the same 2 MiB. */
    size_t behind = size_max(page, length < REGION_SIZE ? REGION_SIZE - length : 0);
    size_t before = size_max(alignment, page);
    alignment = size_max(alignment, MIN_ALIGNMENT);
    char *memory = os_map(before + length + behind, before, NULL);
    if (!memory)
        return NULL;
    reclaim_before_growth(length, false);
    huge_refuse(memory, before + length + behind);
    if (before > page)
        os_discard(memory, before - page);
    char *end = memory + before + length;
    char *block = (char *)round_down((uintptr_t)end - size_max(size, 1), alignment);
    struct big *big = big_cache_add(part, block, size_max(size, 1));
    if (!big) {
        os_discard(memory + before - page, page + length + behind);
        return NULL;
    }
    big->closed = behind;
    big->fence_before = (uint8_t)fence_start(memory + before - page, page, FENCE_MAPPINGS);
    big->fence_behind = (uint8_t)fence_start(end, behind, FENCE_MAPPINGS);
    return big;
}

/* ---- Looking --------------------------------------------------------------------------------- */

static void check_beside(const struct big *big, const char *call)
{
    const char *base = big->region.base, *end = base + big->mapped;
    if (UNLIKELY(
            !bytes_rest_is_zero(first_page_of(big), base) ||
            !bytes_rest_is_zero(end, end_of_pages(big, big->mapped))))
        fatal_pointer(call, DEFECT_OVERFLOW, base, NULL, 0);
}

/* ---- Ending ---------------------------------------------------------------------------------- */

static char *mapping_of(const struct big *big)
{
    return first_page_of(big) - os_page_size();
}

static size_t mapping_bytes(const void *waiting)
{
    const struct big *big = waiting;
    return (size_t)(end_of_pages(big, big->mapped) + big->closed - mapping_of(big));
}

static void unmap_fenced(void *waiting)
{
    struct big *big = waiting;
    page_map_unregister(&big->region);
    if (os_unmap(mapping_of(big), mapping_bytes(big))) {
        big_cache_drop(big);
        return;
    }
    /* The system could not split a mapping. Mostly this costs addresses alone. */
    page_map_register(&big->region);
    struct list_node *node = &big->by_size;
    node->next = ATOMIC_LOAD_RELAXED(&refused);
    while (!__atomic_compare_exchange_n(
        &refused, &node->next, node, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        continue;
}

void hardened_unmap_refused(void)
{
    struct list_node *node = __atomic_exchange_n(&refused, NULL, __ATOMIC_ACQUIRE);
    for (struct list_node *next; node; node = next) {
        next = node->next;
        unmap_fenced(CONTAINER_OF(node, struct big, by_size));
    }
}

static struct quarantine_queue queue;
/* Waiting blocks take addresses alone; a caller that runs out of these ends the waiting. */
static const struct quarantine quarantine = {&queue, 64 * MIB, mapping_bytes, unmap_fenced, 8};

void big_fenced_release(void)
{
    quarantine_release(&quarantine, 0);
    hardened_unmap_refused();
}

void big_fenced_end(struct big *big, const char *call)
{
    check_beside(big, call);
    fence_end(big->fence_before, FENCE_MAPPINGS);
    fence_end(big->fence_behind, FENCE_MAPPINGS);
    /* Making all of it one mapping may exceed the limit on mappings: then marks close it. Left
     * open, it would wait with its memory. */
    size_t bytes = mapping_bytes(big);
    bool closed =
        os_make_untouchable(mapping_of(big), bytes) ||
        fence_close(FENCE_MARKS, first_page_of(big), bytes - os_page_size() - big->closed);
    poison(big->region.base, big->mapped);
    if (closed)
        quarantine_put(&quarantine, big);
    else
        unmap_fenced(big);
}

static void check_waiting_big(const void *waiting)
{
    const struct big *big = waiting;
    ASSERT(!big->live && !big->cached);
    (void)big; /* only asserted on */
}

void big_fenced_check(void)
{
    quarantine_check(&quarantine, check_waiting_big);
}

/* ---- Resizing -------------------------------------------------------------------------------- */

static bool resize_fenced(struct big *big, size_t size)
{
    char *end = end_of_pages(big, big->mapped), *wanted = end_of_pages(big, size);
    size_t page = os_page_size(), before = big->mapped;
    enum fence fence = big->fence_behind;
    if (wanted > end && (size_t)(wanted - end) > big->closed - page)
        return false;
    if (wanted > end && !fence_open(fence, end, (size_t)(wanted - end)))
        return false;
    if (size < big->mapped) {
        memset(big->region.base + size, 0, (size_t)(wanted - (big->region.base + size)));
        if (wanted < end)
            fence_close(fence, wanted, (size_t)(end - wanted));
    }
    big->closed = (size_t)(end + big->closed - wanted);
    big->mapped = size;
    big_cache_recount(big, before, size);
    return true;
}

/* Moves a block, with room behind it, so that growth step by step does not copy at each step. The
 * room costs addresses but no memory. */
static struct big *move_fenced(struct big *big, size_t size)
{
    enum { SHARE = 4 };
    struct big *moved = big_fenced_make(big->part, size + size / SHARE, MIN_ALIGNMENT);
    if (moved)
        resize_fenced(moved, size);
    else
        moved = big_fenced_make(big->part, size, MIN_ALIGNMENT);
    if (!moved)
        return NULL;
    unpoison(moved->region.base, size);
    sparse_copy(
        moved->region.base, big->region.base,
        round_up(size_min(size, big->mapped), sizeof(uint64_t)), SPARSE_TO_ZEROES);
    moved->sample = big->sample;
    if (big_cache_retire(big, big->region.base))
        big_fenced_end(big, "realloc");
    return moved;
}

struct big *big_fenced_resize(struct big *big, size_t size)
{
    check_beside(big, "realloc");
    return resize_fenced(big, size) ? big : move_fenced(big, size);
}
