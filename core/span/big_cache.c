/* See big_cache.h. */
#include "span/big_cache.h"

#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/poison.h"
#include "base/policy.h"
#include "map/metadata.h"
#include "os/os.h"

/* Lengths from 2 MiB to all of the address space, in multiples of 2 MiB, eight steps a doubling. */
enum {
    STEPS = 8,
    LENGTH_COUNT = STEPS * (ADDRESS_BITS - REGION_SHIFT),
    LENGTH_WORDS = (LENGTH_COUNT + 63) / 64
};

static struct {
    struct lock lock CACHE_ALIGNED;
    struct list by_size[LENGTH_COUNT]; /* lock: youngest first */
    uint64_t lengths[LENGTH_WORDS];    /* lock: bit per non-empty list of by_size */
    struct queue by_age;               /* lock: oldest first */
    size_t bytes;                      /* lock */
    struct idle unused;                /* lock: of `bytes` */
} cache;

/* Which list a mapping of `size` bytes belongs to. */
static unsigned length_of(size_t size)
{
    size_t regions = size >> REGION_SHIFT, doublings = 0;
    while (regions >> doublings >= (size_t)2 * STEPS)
        doublings++;
    return (unsigned)size_min(doublings * STEPS + (regions >> doublings), LENGTH_COUNT - 1);
}

/* Lock held. */
static void insert(struct big *big)
{
    unsigned length = length_of(big->mapped);
    big->cached = true;
    KEEP_STORE_ORDER();
    poison(big->region.base, big->mapped);
    list_push(&cache.by_size[length], &big->by_size);
    bitmap_set(cache.lengths, length);
    queue_push(&cache.by_age, &big->by_age);
    cache.bytes += big->mapped;
}

/* Lock held. */
static void extract(struct big *big)
{
    unsigned length = length_of(big->mapped);
    big->cached = false;
    KEEP_STORE_ORDER();
    list_remove(&big->by_size);
    if (!cache.by_size[length].first)
        bitmap_clear(cache.lengths, length);
    queue_remove(&cache.by_age, &big->by_age);
    cache.bytes -= big->mapped;
    idle_lower(&cache.unused, cache.bytes);
}

static void put(struct big *big)
{
    lock_acquire(&cache.lock);
    insert(big);
    lock_release(&cache.lock);
}

struct big *big_register(char *base, size_t size)
{
    struct big *big = page_map_prepare(base) ? metadata_alloc(sizeof *big) : NULL;
    if (!big)
        return NULL;
    big->region = (struct region){REGION_BIG, base};
    big->mapped = size;
    page_map_register(&big->region);
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
        put(big);
        return 0;
    }
    metadata_free(big, sizeof *big);
    return size;
}

/* A search looks at no more than so many mappings that turn out not to fit. */
enum { TRIES_MAX = 16 };

/* The first mapping of at least `size` bytes in the lists from its own on. Lock held. */
static struct big *find_long_enough(size_t size, size_t alignment)
{
    unsigned length = length_of(size), tries = 0;
    for (;; length++) {
        length = bitmap_find(cache.lengths, length, LENGTH_COUNT, true);
        if (length == LENGTH_COUNT)
            return NULL;
        for (struct list_node *node = cache.by_size[length].first; node; node = node->next) {
            struct big *big = CONTAINER_OF(node, struct big, by_size);
            if (big->mapped >= size && ((uintptr_t)big->region.base & (alignment - 1)) == 0)
                return big;
            if (++tries == TRIES_MAX)
                return NULL;
        }
    }
}

/* A mapping of at least half of the size, the longest that is shorter than it: to be made longer,
 * for which it may have to move. Lock held. */
static struct big *find_nearly(size_t size)
{
    for (unsigned length = length_of(size) + 1; length-- > length_of(size / 2);) {
        struct big *big = LIST_ENTRY(cache.by_size[length].first, struct big, by_size);
        if (big && big->mapped >= size / 2)
            return big;
    }
    return NULL;
}

struct big *big_cache_take(size_t size, size_t alignment)
{
    lock_acquire(&cache.lock);
    struct big *big = find_long_enough(size, alignment);
    if (!big && alignment <= os_page_size())
        big = find_nearly(size);
    if (big) {
        extract(big);
        big->live = true;
    }
    lock_release(&cache.lock);
    return big;
}

/* Unmaps the oldest mapping, unless it is longer than that; returns its bytes. */
static size_t evict_oldest(size_t bytes_max)
{
    lock_acquire(&cache.lock);
    struct big *big = LIST_ENTRY(cache.by_age.first, struct big, by_age);
    if (big && big->mapped > bytes_max)
        big = NULL;
    if (big)
        extract(big);
    lock_release(&cache.lock);
    return big ? unmap(big) : 0;
}

void big_cache_put(struct big *big)
{
    size_t bound = (size_t)POLICY(big_cache_mib) * MIB;
    if (big->mapped > bound) {
        unmap(big);
        return;
    }
    lock_acquire(&cache.lock);
    insert(big);
    size_t bytes = cache.bytes;
    lock_release(&cache.lock);
    if (bytes > bound)
        big_cache_evict(bytes - bound);
}

size_t big_cache_evict(size_t bytes)
{
    size_t evicted = 0, size;
    while (evicted < bytes && (size = evict_oldest(SIZE_MAX)) != 0)
        evicted += size;
    return evicted;
}

size_t big_cache_trim(size_t bytes)
{
    size_t evicted = 0, size;
    while ((size = evict_oldest(bytes - evicted)) != 0)
        evicted += size;
    return evicted;
}

size_t big_cache_unused(enum idle_watcher watcher)
{
    lock_acquire(&cache.lock);
    size_t unused = idle_ask(&cache.unused, watcher, cache.bytes);
    lock_release(&cache.lock);
    return unused;
}

size_t big_cache_bytes(void)
{
    lock_acquire(&cache.lock);
    size_t bytes = cache.bytes;
    lock_release(&cache.lock);
    return bytes;
}

struct lock *big_lock(void)
{
    return &cache.lock;
}

void big_cache_repair(void)
{
    memset(cache.by_size, 0, sizeof cache.by_size);
    memset(cache.lengths, 0, sizeof cache.lengths);
    cache.by_age.first = NULL;
    cache.bytes = 0;
    for (struct region *region = NULL; (region = page_map_next(region)) != NULL;) {
        struct big *big = (struct big *)region;
        if (region->kind == REGION_BIG && big->cached)
            insert(big);
    }
    idle_lower(&cache.unused, cache.bytes);
}

void big_cache_check(void)
{
    size_t bytes = 0, count = 0;
    lock_acquire(&cache.lock);
    for (unsigned length = 0; length < LENGTH_COUNT; length++) {
        struct list_node *node = cache.by_size[length].first;
        ASSERT(bitmap_test(cache.lengths, length) == (node != NULL));
        for (; node; node = node->next, count++) {
            struct big *big = CONTAINER_OF(node, struct big, by_size);
            ASSERT(big->cached && !big->live && length_of(big->mapped) == length);
            ASSERT(big->dirty <= big->mapped && list_contains(&big->by_age));
            ASSERT(page_map_lookup(big->region.base) == &big->region);
            bytes += big->mapped;
        }
    }
    for (struct list_node *node = cache.by_age.first; node; node = node->next)
        count--;
    ASSERT(count == 0 && bytes == cache.bytes);
    lock_release(&cache.lock);
}
