/* See big_cache.h. */
#include "span/big_cache.h"

#include <stddef.h>

#include "base/poison.h"
#include "base/policy.h"
#include "base/pressure.h"
#include "os/os.h"
#include "span/big_part.h"
#include "span/page_heap.h"

/* ---- Sums over all parts --------------------------------------------------------------------- */

unsigned big_cache_parts(void)
{
    return (unsigned)size_min(page_heap_parts(), BIG_PARTS);
}

static struct big_part *parts_end(void)
{
    return big_parts + big_cache_parts();
}

/* The sum of the field of struct big_part that starts at `offset`. */
static size_t sum(size_t offset)
{
    size_t total = 0;
    for (struct big_part *part = big_parts; part < parts_end(); part++)
        total += ATOMIC_LOAD_RELAXED((const size_t *)((const char *)part + offset));
    return total;
}

size_t big_live_bytes(void)
{
    return sum(offsetof(struct big_part, live_bytes));
}

size_t big_cache_bytes(void)
{
    return sum(offsetof(struct big_part, cached_bytes));
}

size_t big_cache_mapped(void)
{
    return sum(offsetof(struct big_part, mapped_bytes));
}

/* Most dirty bytes that may be cached. What blocks took lately is what a program takes again and
 * again: part of it serves the next round, unless the program or its surroundings need the
 * addresses. */
static size_t bytes_max(void)
{
    size_t least = (size_t)POLICY(big_cache_mib) * MIB;
    size_t share = big_live_bytes() / 100 * (size_t)POLICY(retain_percent);
    size_t lately =
        pressure_is_limited() ? 0 : sum(offsetof(struct big_part, taken_bytes)) / LATELY_PART;
    return least ? least + size_max(share, size_min(lately, least * 2)) : 0;
}

/* How many of so many bytes are too many to cache. Mostly needs no look at the parts. */
static size_t excess(size_t bytes)
{
    return bytes <= (size_t)POLICY(big_cache_mib) * MIB ? 0 : bytes - size_min(bytes, bytes_max());
}

size_t big_cache_unused(enum idle_watcher watcher)
{
    size_t unused = 0;
    for (struct big_part *part = big_parts; part < parts_end(); part++) {
        lock_acquire(&part->lock);
        unused += idle_ask(&part->unused, watcher, part->cached_bytes);
        if (watcher == IDLE_SINCE_TICK)
            ATOMIC_STORE_RELAXED(&part->taken_bytes, 0); /* the program may go to sleep now */
        lock_release(&part->lock);
    }
    if (watcher == IDLE_SINCE_GROWTH)
        return unused - size_min(unused, sum(offsetof(struct big_part, rest_bytes)));
    return size_max(unused, excess(big_cache_bytes()));
}

struct big_stats big_stats(void)
{
    struct big_stats stats = {0};
    for (struct big_part *part = big_parts; part < parts_end(); part++) {
        lock_acquire(&part->lock);
        stats.allocated += part->allocated;
        stats.freed += part->freed;
        stats.live_bytes += part->live_bytes;
        stats.cached_bytes += part->cached_bytes;
        lock_release(&part->lock);
    }
    stats.live_blocks = stats.allocated - stats.freed;
    return stats;
}

/* ---- Mappings come and go -------------------------------------------------------------------- */

/* The part for the blocks of threads of the shard. */
static struct big_part *part_for(unsigned shard)
{
    page_heap_use_part(shard);
    return &big_parts[shard % BIG_PARTS];
}

struct big *big_cache_add(unsigned shard, char *base, size_t size)
{
    if (!page_map_prepare(base) || !page_map_prepare(base + size - 1))
        return NULL;
    struct big_part *part = part_for(shard);
    big_part_lock_with_spare(part);
    struct big *big = big_part_record(part, base, size);
    if (big)
        big_part_hand_out(part, big, size);
    lock_release(&part->lock);
    return big;
}

void big_cache_drop(struct big *big)
{
    struct big_part *part = big_part_of(big);
    lock_acquire(&part->lock);
    big_part_note_unused(part);
    list_push(&part->spares, &big->by_size);
    lock_release(&part->lock);
}

/* Unmaps a mapping that only the caller has. False: it stays, and had no memory to give. */
static bool unmap_cached(struct big *big)
{
    page_map_unregister(&big->region);
    if (os_unmap(big->region.base, big->mapped)) {
        big_cache_drop(big);
        return true;
    }
    /* The system could not split a mapping: give at least the memory back. */
    struct big_part *part = big_part_of(big);
    bool purged = big->dirty && os_purge(big->region.base, big->dirty);
    if (purged)
        big->dirty = 0;
    poison(big->region.base, big->mapped);
    lock_acquire(&part->lock);
    page_map_register(&big->region);
    big_part_insert(part, big);
    lock_release(&part->lock);
    return purged;
}

/* Takes out the oldest of the part, of a rest as much as has so many dirty bytes; NULL: there is
 * nothing. Without memory for its record a rest stays, and is the youngest then. Lock held. */
static struct big *extract_oldest(struct big_part *part, size_t bytes)
{
    struct big *big = NULL;
    for (unsigned tries = 0; !big && part->by_age.first && tries < FIT_TRIES; tries++) {
        struct big *oldest = CONTAINER_OF(part->by_age.first, struct big, by_age);
        big = oldest->cached ? oldest : big_part_detach(part, oldest, bytes);
        if (oldest->cached)
            big_part_extract(part, oldest);
    }
    return big;
}

/* Takes out what was dirty for longest of the part that has most, to give back at most `bytes` of
 * it; NULL: there is nothing. */
static struct big *take_oldest(size_t bytes)
{
    struct big_part *part = big_parts;
    for (struct big_part *other = part + 1; other < parts_end(); other++)
        if (ATOMIC_LOAD_RELAXED(&other->mapped_bytes) > ATOMIC_LOAD_RELAXED(&part->mapped_bytes))
            part = other;
    big_part_lock_with_spare(part);
    struct big *big = extract_oldest(part, bytes);
    lock_release(&part->lock);
    return big;
}

/* Gives back at most `bytes` of a mapping that only the caller has, and unmaps it, if that is all;
 * adds to `*evicted`. False: the system refuses. */
static bool evict(struct big *big, size_t bytes, size_t *evicted)
{
    size_t dirty = big->dirty;
    if (dirty <= bytes) {
        bool gone = unmap_cached(big);
        *evicted += gone ? dirty : 0;
        return gone;
    }
    struct big_part *part = big_part_of(big);
    size_t size = round_up(bytes, os_page_size());
    bool purged = os_purge(big->region.base + dirty - size, size);
    lock_acquire(&part->lock);
    big->dirty -= purged ? size : 0;
    *evicted += purged ? size : 0;
    big_part_insert(part, big);
    big_part_note_unused(part);
    lock_release(&part->lock);
    return purged;
}

size_t big_cache_evict(size_t bytes)
{
    size_t evicted = 0;
    struct big *big = NULL;
    while (evicted < bytes && (big = take_oldest(bytes - evicted)) != NULL &&
           evict(big, bytes - evicted, &evicted))
        continue;
    return evicted;
}

static void keep_bound(void)
{
    size_t bytes = excess(big_cache_bytes());
    if (bytes)
        big_cache_evict(bytes);
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* A fitting mapping of the part. */
static struct big *take_fitting(struct big_part *part, size_t size, size_t alignment)
{
    lock_acquire(&part->lock);
    struct big *big = big_part_find(part, size, alignment);
    if (big) {
        big_part_extract(part, big);
        big_part_hand_out(part, big, size);
        big_part_note_unused(part);
    }
    lock_release(&part->lock);
    return big;
}

struct big *big_cache_take(unsigned shard, size_t size, size_t alignment)
{
    struct big_part *part = part_for(shard);
    struct big *big = take_fitting(part, size, alignment);
    for (struct big_part *other = big_parts; !big && other < parts_end(); other++)
        if (other != part && ATOMIC_LOAD_RELAXED(&other->cached_bytes) >= size)
            big = take_fitting(other, size, alignment);
    return big;
}

struct big *big_cache_take_shorter(unsigned shard, size_t size)
{
    struct big_part *part = part_for(shard);
    lock_acquire(&part->lock);
    struct big *big = big_part_find_shorter(part, size);
    if (big) {
        big_part_extract(part, big);
        big->live = true;
        big_part_note_unused(part);
    }
    lock_release(&part->lock);
    return big;
}

bool big_cache_retire(struct big *big, const void *block)
{
    struct big_part *part = big_part_of(big);
    lock_acquire(&part->lock);
    bool live = big->live && block == big->region.base;
    if (LIKELY(live))
        big_part_retire(part, big);
    lock_release(&part->lock);
    return live;
}

void big_cache_put(struct big *big)
{
    struct big_part *part = big_part_of(big);
    /* What the program advised, locked or protected would be so for a later block. */
    bool kept = !excess(big->mapped) && os_is_one_mapping(big->region.base, big->mapped);
    poison(big->region.base, big->mapped);
    lock_acquire(&part->lock);
    big->live = false;
    if (kept)
        big_part_insert(part, big);
    lock_release(&part->lock);
    if (!kept)
        unmap_cached(big);
    keep_bound();
}

bool big_cache_part_with_rest(struct big *big)
{
    struct big_part *part = big_part_of(big);
    big_part_lock_with_spare(part);
    struct big *rest = big->rest ? big_part_detach(part, big, SIZE_MAX) : NULL;
    if (rest)
        big_part_insert(part, rest);
    bool done = big->rest == 0;
    lock_release(&part->lock);
    return done;
}

bool big_cache_fit(struct big *big, size_t size)
{
    if (size < big->mapped)
        page_map_prepare(big->region.base + size); /* for what may go of the rest */
    struct big_part *part = big_part_of(big);
    big_part_lock_with_spare(part);
    size_t whole = big->mapped + big->rest;
    big_part_fit(part, big, size);
    poison(big->region.base + big->mapped, big->rest);
    /* As much as all that may be cached goes, or it would drive out what others use. */
    struct big *gone = excess(big->rest) ? big_part_detach(part, big, SIZE_MAX) : NULL;
    big_part_note_unused(part);
    lock_release(&part->lock);
    if (gone)
        unmap_cached(gone);
    keep_bound();
    return size <= whole;
}

void big_cache_recount(struct big *big, size_t before, size_t now)
{
    struct big_part *part = big_part_of(big);
    lock_acquire(&part->lock);
    part->allocated += before == 0;
    big_part_count(part, before, now);
    if (now < before)
        ATOMIC_STORE_RELAXED(&big->dirty, size_min(big->dirty, now));
    lock_release(&part->lock);
}
