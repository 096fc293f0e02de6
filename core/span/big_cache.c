/* See big_cache.h. */
#include "span/big_cache.h"

#include <stddef.h>

#include "base/poison.h"
#include "base/policy.h"
#include "base/pressure.h"
#include "os/os.h"
#include "span/big_part.h"

/* ---- Sums over all parts --------------------------------------------------------------------- */

unsigned big_cache_parts(void)
{
    return parts_count(&big_parts);
}

/* The sum of the field of struct big_part that starts at `offset`. */
static size_t sum(size_t offset)
{
    size_t total = 0;
    for (unsigned i = 0; i < big_cache_parts(); i++)
        total += ATOMIC_LOAD_RELAXED((const size_t *)((const char *)big_part_at(i) + offset));
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
    for (unsigned i = 0; i < big_cache_parts(); i++) {
        struct big_part *part = big_part_at(i);
        lock_acquire(&part->lock);
        unused += idle_ask(&part->unused, watcher, part->cached_bytes);
        if (watcher == IDLE_SINCE_TICK)
            ATOMIC_STORE_RELAXED(&part->taken_bytes, 0); /* the program may go to sleep now */
        lock_release(&part->lock);
    }
    if (watcher != IDLE_SINCE_TICK)
        return unused;
    return size_max(unused, excess(big_cache_bytes()));
}

struct big_stats big_stats(void)
{
    struct big_stats stats = {0};
    for (unsigned i = 0; i < big_cache_parts(); i++) {
        struct big_part *part = big_part_at(i);
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

struct big *big_cache_add(unsigned number, char *base, size_t size)
{
    if (!page_map_prepare(base) || !page_map_prepare(base + size - 1))
        return NULL;
    struct big_part *part = big_part_lock_with_spares(parts_use(&big_parts, number));
    struct big *big = big_part_record(part, base, size);
    if (big) {
        /* The system maps downwards. */
        if (base + size != part->newest)
            part->newest_origin = ++part->origins;
        part->newest = base;
        big->origin = part->newest_origin;
        big_part_hand_out(part, big);
    }
    lock_release(&part->lock);
    return big;
}

void big_cache_drop(struct big *big)
{
    struct big_part *part = big_part_of(big);
    lock_acquire(&part->lock);
    list_push(&part->spares, &big->by_size);
    lock_release(&part->lock);
}

/* Unmaps a mapping that only the caller has, and that is no longer registered. False: it stays, and
 * had no memory to give. */
static bool unmap_cached(struct big *big)
{
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

/* Takes the oldest mapping out of the part that has most. `bytes`: as evict_oldest. */
static struct big *take_oldest(size_t bytes)
{
    struct big_part *part = big_part_at(0);
    for (unsigned i = 1; i < big_cache_parts(); i++)
        if (ATOMIC_LOAD_RELAXED(&big_part_at(i)->mapped_bytes) >
            ATOMIC_LOAD_RELAXED(&part->mapped_bytes))
            part = big_part_at(i);
    lock_acquire(&part->lock);
    struct big *big = LIST_ENTRY(part->by_age.first, struct big, by_age);
    if (big)
        big_part_extract(part, big);
    if (big && big->dirty <= bytes) {
        page_map_unregister(&big->region);
        big_part_note_unused(part);
    }
    lock_release(&part->lock);
    return big;
}

/* Gives at most `bytes` back of the mapping that was dirty for longest, and unmaps it if that is
 * all; adds to `*evicted`. False: there is none, or the system refuses. */
static bool evict_oldest(size_t bytes, size_t *evicted)
{
    struct big *big = take_oldest(bytes);
    if (!big)
        return false;
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
    big_part_take_in(part, big);
    big_part_note_unused(part);
    lock_release(&part->lock);
    return purged;
}

size_t big_cache_evict(size_t bytes)
{
    size_t evicted = 0;
    while (evicted < bytes && evict_oldest(bytes - evicted, &evicted))
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
static struct big *take_fitting(unsigned number, size_t size, size_t alignment)
{
    struct big_part *part = big_part_lock_with_spares(number);
    struct big *big = big_part_find(part, size, alignment);
    if (big) {
        big_part_extract(part, big);
        big_part_split(part, big, size);
        big_part_hand_out(part, big);
        big_part_note_unused(part);
    }
    lock_release(&part->lock);
    return big;
}

struct big *big_cache_take(unsigned part, size_t size, size_t alignment)
{
    part = parts_use(&big_parts, part);
    struct big *big = take_fitting(part, size, alignment);
    for (unsigned i = 0; !big && i < big_cache_parts(); i++)
        if (i != part && ATOMIC_LOAD_RELAXED(&big_part_at(i)->cached_bytes) >= size)
            big = take_fitting(i, size, alignment);
    return big;
}

struct big *big_cache_take_shorter(unsigned number, size_t size)
{
    struct big_part *part = big_part_at(parts_use(&big_parts, number));
    lock_acquire(&part->lock);
    struct big *big = big_part_find_shorter(part, size);
    if (big) {
        big_part_extract(part, big);
        big->origin = ++part->origins;
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
    if (LIKELY(live)) {
        big->live = false;
        part->freed++;
        big_part_count(part, big->mapped, 0);
    }
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
        big_part_take_in(part, big);
    else
        page_map_unregister(&big->region);
    lock_release(&part->lock);
    if (!kept)
        unmap_cached(big);
    keep_bound();
}

bool big_cache_lengthen(struct big *big, size_t size)
{
    struct big_part *part = big_part_lock_with_spares(big->part);
    size_t before = big->mapped;
    struct big *after = big_part_cached_at(part, big->region.base + before);
    bool fits = after && after->huge == big->huge && before + after->mapped >= size;
    if (fits) {
        big_part_extract(part, after);
        big->zeroed &= after->dirty == 0;
        big_part_join(part, big, after);
        big_part_split(part, big, size);
        big_part_count(part, before, big->mapped);
        big_part_note_unused(part);
    }
    lock_release(&part->lock);
    return fits;
}

bool big_cache_shorten(struct big *big, size_t size)
{
    size_t before = big->mapped;
    if (excess(before - size) || !os_is_one_mapping(big->region.base, before))
        return false;
    struct big_part *part = big_part_lock_with_spares(big->part);
    big->dirty = before;
    bool done = big_part_split(part, big, size);
    if (done)
        big_part_count(part, before, big->mapped);
    lock_release(&part->lock);
    keep_bound();
    return done;
}

void big_cache_leave(struct big *big)
{
    struct big_part *part = big_part_of(big);
    lock_acquire(&part->lock);
    big->origin = ++part->origins;
    lock_release(&part->lock);
}

void big_cache_return(struct big *big, size_t before)
{
    struct big_part *part = big_part_of(big);
    lock_acquire(&part->lock);
    part->allocated += before == 0;
    big_part_count(part, before, big->mapped);
    lock_release(&part->lock);
}
