/* See big.h. */
#include "span/big.h"

#include <string.h>

#include "base/list.h"
#include "base/poison.h"
#include "base/policy.h"
#include "map/metadata.h"
#include "os/fatal.h"
#include "os/os.h"
#include "span/purge.h"

struct big {
    struct region region;    /* const while registered */
    size_t mapped;           /* bytes of the mapping; owner of the block, or lock when cached */
    size_t dirty;            /* leading bytes that may not be zero; as `mapped` */
    bool live;               /* lock: handed out, not in the cache */
    bool sparse;             /* owner: zeroes were asked for, of which few may be touched */
    bool huge;               /* huge pages were asked for; as `mapped` */
    struct list_node by_age; /* lock: in the cache, youngest first */
};

static struct {
    struct lock lock CACHE_ALIGNED;
    struct list cache;      /* lock: youngest first */
    struct big_stats stats; /* lock */
    size_t unused_bytes;    /* lock: least that was cached since the last tick of the purge */
} bigs;

/* A program with less than this in big blocks may use small parts of them, as sort does of its
 * buffer for a pipe: each part in a huge page would take 2 MiB, most of the program's memory. */
static const size_t huge_bytes_min = 16 * MIB;

static size_t mapping_size(size_t size)
{
    return round_up(size, os_page_size());
}

/* Lock held. */
static void cache_remove(struct big *big)
{
    list_remove(&big->by_age);
    bigs.stats.cached_bytes -= big->mapped;
    bigs.unused_bytes = size_min(bigs.unused_bytes, bigs.stats.cached_bytes);
}

/* Lock held. */
static void cache_insert(struct big *big)
{
    big->live = false;
    poison(big->region.base, big->mapped);
    list_push(&bigs.cache, &big->by_age);
    bigs.stats.cached_bytes += big->mapped;
}

static void put_in_cache(struct big *big)
{
    lock_acquire(&bigs.lock);
    cache_insert(big);
    lock_release(&bigs.lock);
}

/* The shortest cached mapping of at least `size` bytes; failing that, the longest of all. */
static struct big *cache_find(size_t size)
{
    struct big *fit = NULL, *longest = NULL;
    for (struct list_node *node = bigs.cache.first; node; node = node->next) {
        struct big *big = CONTAINER_OF(node, struct big, by_age);
        if (big->mapped >= size && (!fit || big->mapped < fit->mapped))
            fit = big;
        if (!longest || big->mapped > longest->mapped)
            longest = big;
    }
    return fit ? fit : longest;
}

/* Takes a mapping out of the cache for a block of `size` bytes; NULL when the cache is empty. */
static struct big *cache_take(size_t size)
{
    lock_acquire(&bigs.lock);
    struct big *big = cache_find(size);
    if (big) {
        cache_remove(big);
        big->live = true;
    }
    lock_release(&bigs.lock);
    return big;
}

static size_t unmap(struct big *big)
{
    page_map_unregister(&big->region);
    size_t size = big->mapped;
    if (!os_unmap(big->region.base, size)) {
        /* The system could not split a mapping: give at least the memory back. */
        page_map_register(&big->region);
        if (os_purge(big->region.base, size))
            big->dirty = 0;
        put_in_cache(big);
        return 0;
    }
    metadata_free(big, sizeof *big);
    return size;
}

static struct big *register_mapping(char *base, size_t size)
{
    struct big *big = page_map_prepare(base) ? metadata_alloc(sizeof *big) : NULL;
    if (!big)
        return NULL;
    big->region = (struct region){REGION_BIG, base};
    big->mapped = size;
    page_map_register(&big->region);
    return big;
}

/* Cuts the mapping off behind `size` bytes, rounded up to where another block can start; the rest
 * becomes a cached mapping. */
static void split(struct big *big, size_t size)
{
    size_t kept = round_up(size, REGION_SIZE);
    if (big->mapped < kept + REGION_SIZE)
        return;
    struct big *rest = register_mapping(big->region.base + kept, big->mapped - kept);
    if (!rest)
        return;
    rest->huge = big->huge;
    rest->dirty = big->dirty > kept ? big->dirty - kept : 0;
    big->mapped = kept;
    big->dirty = size_min(big->dirty, kept);
    put_in_cache(rest);
}

/* Makes the mapping `size` bytes long, in place or at another address; false: it is as before. */
static bool extend(struct big *big, size_t size)
{
    size_t growth = size - big->mapped;
    if (os_resize(big->region.base, big->mapped, size)) {
        big->mapped = size;
        purge_before_growth(growth);
        return true;
    }
    char *target = os_map(size, REGION_SIZE, NULL);
    if (!target)
        return false;
    if (!page_map_prepare(target)) {
        os_discard(target, size);
        return false;
    }
    page_map_unregister(&big->region);
    enum os_move_result moved = os_move(big->region.base, big->mapped, target, size);
    if (moved != OS_MOVED) {
        page_map_register(&big->region);
        /* After a failure the target may be gone. Unmapping it could hit what somebody else has
         * mapped there since; so its addresses, untouched, are lost. */
        if (moved == OS_MOVE_REFUSED)
            os_discard(target, size);
        return false;
    }
    big->region.base = target;
    big->mapped = size;
    page_map_register(&big->region);
    purge_before_growth(growth);
    return true;
}

static struct big *from_cache(size_t size, size_t alignment)
{
    if (alignment > REGION_SIZE)
        return NULL;
    struct big *big = cache_take(size);
    if (!big)
        return NULL;
    if (big->mapped >= size) {
        split(big, size);
        return big;
    }
    if (extend(big, size))
        return big;
    put_in_cache(big);
    return NULL;
}

static struct big *from_system(size_t size, size_t alignment)
{
    char *base = os_map(size, size_max(alignment, REGION_SIZE), NULL);
    if (!base)
        return NULL;
    purge_before_growth(size);
    struct big *big = register_mapping(base, size);
    if (!big) {
        os_discard(base, size);
        return NULL;
    }
    big->live = true;
    return big;
}

/* Fresh pages rather than a memset: who wants this much zeroed may touch little of it. */
static void clear(struct big *big)
{
    if (!os_purge(big->region.base, big->dirty))
        memset(big->region.base, 0, big->dirty);
    big->dirty = 0;
}

/* Counts the bytes of a block, and the block if it is new; asks for huge pages. A mapping from the
 * cache keeps those that it has. */
static void count_block(struct big *big, bool new)
{
    lock_acquire(&bigs.lock);
    bigs.stats.allocated += new;
    uint64_t live = bigs.stats.live_bytes += big->mapped;
    lock_release(&bigs.lock);
    if (!big->sparse && !big->huge && live >= huge_bytes_min && POLICY(huge_pages)) {
        /* For the whole mapping, or the system could not resize it in one piece. */
        os_advise_huge_pages(big->region.base, big->mapped, true);
        big->huge = true;
    }
}

void *big_alloc(size_t size, size_t alignment, bool zero)
{
    size = mapping_size(size);
    struct big *big = from_cache(size, alignment);
    if (!big)
        big = from_system(size, alignment);
    if (!big)
        return NULL;
    unpoison(big->region.base, big->mapped);
    if (zero && big->dirty)
        clear(big);
    big->sparse = zero;
    count_block(big, true);
    return big->region.base;
}

void big_check_interior(const struct big *big, const void *block, const char *call)
{
    const char *base = big->region.base;
    if (big->live && (const char *)block > base && (const char *)block < base + big->mapped)
        fatal_pointer(call, DEFECT_INTERIOR, block, base, big->mapped);
}

static _Noreturn void fatal_big(const struct big *big, const void *block, const char *call)
{
    big_check_interior(big, block, call);
    fatal_pointer(
        call, block == big->region.base ? DEFECT_DOUBLE_FREE : DEFECT_FOREIGN, block, NULL, 0);
}

size_t big_size(const struct big *big, const void *block, const char *call)
{
    if (UNLIKELY(block != big->region.base || !big->live))
        fatal_big(big, block, call);
    return big->mapped;
}

void big_free(struct big *big, void *block, const char *call)
{
    lock_acquire(&bigs.lock);
    bool live = big->live && block == big->region.base;
    if (LIKELY(live)) {
        bigs.stats.freed++;
        bigs.stats.live_bytes -= big->mapped;
        big->dirty = big->mapped;
        cache_insert(big);
    }
    size_t cached = bigs.stats.cached_bytes;
    lock_release(&bigs.lock);
    if (UNLIKELY(!live))
        fatal_big(big, block, call);
    purge_arm();
    size_t bound = (size_t)POLICY(big_cache_mib) * MIB;
    if (cached > bound)
        big_cache_evict(cached - bound);
}

/* Makes the live mapping `size` bytes long; false: it is as before. */
static bool resize(struct big *big, size_t size)
{
    size_t before = big->mapped;
    if (size > before)
        return extend(big, size);
    if (before - size < REGION_SIZE && before - size < before / 8)
        return true;
    if (!os_unmap(big->region.base + size, before - size))
        return false;
    big->mapped = size;
    return true;
}

void *big_resize(struct big *big, size_t size)
{
    /* Not counted meanwhile. Who maps a big block at the addresses that become free takes the lock
     * later: so what this thread did to them has happened before, which else only the system knows.
     */
    lock_acquire(&bigs.lock);
    bigs.stats.live_bytes -= big->mapped;
    lock_release(&bigs.lock);
    bool done = resize(big, mapping_size(size));
    count_block(big, false);
    return done ? big->region.base : NULL;
}

/* The oldest cached mapping. Lock held. */
static struct big *oldest(void)
{
    struct big *last = NULL;
    for (struct list_node *node = bigs.cache.first; node; node = node->next)
        last = CONTAINER_OF(node, struct big, by_age);
    return last;
}

/* Unmaps the oldest cached mapping, unless it is longer than that; returns its bytes. */
static size_t evict(size_t bytes_max)
{
    lock_acquire(&bigs.lock);
    struct big *big = oldest();
    if (big && big->mapped > bytes_max)
        big = NULL;
    if (big)
        cache_remove(big);
    lock_release(&bigs.lock);
    return big ? unmap(big) : 0;
}

size_t big_cache_evict(size_t bytes)
{
    size_t evicted = 0, size;
    while (evicted < bytes && (size = evict(SIZE_MAX)) != 0)
        evicted += size;
    return evicted;
}

size_t big_cache_expire(void)
{
    size_t evicted = 0, size;
    lock_acquire(&bigs.lock);
    size_t unused = bigs.unused_bytes;
    lock_release(&bigs.lock);
    while ((size = evict(unused - evicted)) != 0)
        evicted += size;
    lock_acquire(&bigs.lock);
    bigs.unused_bytes = bigs.stats.cached_bytes;
    lock_release(&bigs.lock);
    return evicted;
}

struct big_stats big_stats(void)
{
    lock_acquire(&bigs.lock);
    struct big_stats stats = bigs.stats;
    lock_release(&bigs.lock);
    stats.live_blocks = stats.allocated - stats.freed;
    return stats;
}

struct lock *big_lock(void)
{
    return &bigs.lock;
}
