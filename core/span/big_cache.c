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

/* Cached mappings, those with dirty bytes or those without. */
struct shelf {
    struct list by_size[LENGTH_COUNT]; /* lock: youngest first */
    uint64_t lengths[LENGTH_WORDS];    /* lock: bit per non-empty list of by_size */
    struct queue by_age;               /* lock: oldest first */
};

enum { DIRTY, CLEAN, SHELVES };

static struct part {
    struct lock lock CACHE_ALIGNED;
    size_t live_bytes;           /* lock; read as an atomic by any thread, as are the next two */
    size_t bytes[SHELVES];       /* dirty bytes of the one shelf, all bytes of the other */
    size_t mapped_bytes;         /* of both shelves */
    uint64_t allocated, freed;   /* lock: blocks since the start */
    struct big *newest;          /* lock: what was mapped last, to find its neighbours */
    struct list spares;          /* lock: records that are not in use */
    struct idle unused;          /* lock: of the dirty bytes */
    size_t live_peak;            /* as live_bytes: most of them since the last tick */
    size_t live_peak_before;     /* as live_bytes: since the one before, until the last */
    struct shelf shelf[SHELVES]; /* lock */
} parts[BIG_PARTS];

static unsigned parts_used = 1; /* atomic relaxed, any thread: no part from here on was ever used */

/* ---- One part; the lock is held -------------------------------------------------------------- */

/* Which list a mapping of `size` bytes belongs to. */
static unsigned length_of(size_t size)
{
    size_t regions = size >> REGION_SHIFT, doublings = 0;
    while (regions >> doublings >= (size_t)2 * STEPS)
        doublings++;
    return (unsigned)size_min(doublings * STEPS + (regions >> doublings), LENGTH_COUNT - 1);
}

static unsigned shelf_of(const struct big *big)
{
    return big->dirty ? DIRTY : CLEAN;
}

static void add_bytes(size_t *sum, size_t bytes)
{
    ATOMIC_STORE_RELAXED(sum, *sum + bytes);
}

static void add_live(struct part *part, size_t bytes)
{
    add_bytes(&part->live_bytes, bytes);
    if (part->live_bytes > part->live_peak)
        ATOMIC_STORE_RELAXED(&part->live_peak, part->live_bytes);
}

static void add_cached(struct part *part, const struct big *big, size_t sign)
{
    add_bytes(&part->bytes[shelf_of(big)], sign * (big->dirty ? big->dirty : big->mapped));
    add_bytes(&part->mapped_bytes, sign * big->mapped);
}

static void insert(struct part *part, struct big *big)
{
    struct shelf *shelf = &part->shelf[shelf_of(big)];
    unsigned length = length_of(big->mapped);
    big->cached = true;
    KEEP_STORE_ORDER();
    list_push(&shelf->by_size[length], &big->by_size);
    bitmap_set(shelf->lengths, length);
    queue_push(&shelf->by_age, &big->by_age);
    add_cached(part, big, 1);
}

static void extract(struct part *part, struct big *big)
{
    struct shelf *shelf = &part->shelf[shelf_of(big)];
    unsigned length = length_of(big->mapped);
    big->cached = false;
    KEEP_STORE_ORDER();
    list_remove(&big->by_size);
    if (!shelf->by_size[length].first)
        bitmap_clear(shelf->lengths, length);
    queue_remove(&shelf->by_age, &big->by_age);
    add_cached(part, big, (size_t)-1);
}

/* To be called when what is cached has become less, and not in the middle of an exchange. */
static void note_unused(struct part *part)
{
    idle_lower(&part->unused, part->bytes[DIRTY]);
}

/* Links two mappings, or none, as neighbours. */
static void link(struct big *low, struct big *high)
{
    if (low)
        low->after = high;
    if (high)
        high->before = low;
}

/* A mapping that moves, or ends, has no neighbours. */
static void unlink(struct part *part, struct big *big)
{
    if (big->before)
        big->before->after = NULL;
    if (big->after)
        big->after->before = NULL;
    big->before = big->after = NULL;
    if (part->newest == big)
        part->newest = NULL;
}

/* Makes two neighbours one, neither of which is in a list. */
static void join(struct part *part, struct big *low, struct big *high)
{
    page_map_unregister(&high->region);
    KEEP_STORE_ORDER();
    low->dirty = high->dirty ? low->mapped + high->dirty : low->dirty;
    low->mapped += high->mapped;
    link(low, high->after);
    if (part->newest == high)
        part->newest = low;
    list_push(&part->spares, &high->by_size);
}

/* True when one is linked to the other and they are of one kind. A child of fork may have linked
 * what was just being cut. */
static bool touch(const struct big *low, const struct big *high)
{
    return low && high && low->region.base + low->mapped == high->region.base &&
           low->huge == high->huge;
}

/* True when neighbours may be one. Not if what is clean would pass for dirty. */
static bool may_join(const struct big *low, const struct big *high)
{
    return touch(low, high) && (high->dirty == 0 || low->dirty == low->mapped);
}

/* Takes the mapping in, together with its neighbours. */
static void take_in(struct part *part, struct big *big)
{
    struct big *before = big->before, *after = big->after;
    if (after && after->cached && may_join(big, after)) {
        extract(part, after);
        join(part, big, after);
    }
    if (before && before->cached && may_join(before, big)) {
        extract(part, before);
        join(part, before, big);
        big = before;
    }
    insert(part, big);
}

/* Cuts the mapping off behind `size` bytes and caches the rest; false: nothing has changed. What is
 * left of a huge page is not cut in two. */
static bool split(struct part *part, struct big *big, size_t size)
{
    size_t kept = round_up(size, big->huge ? REGION_SIZE : UNIT_SIZE);
    char *base = (char *)big->region.base + kept;
    struct big *rest = LIST_ENTRY(part->spares.first, struct big, by_size);
    if (big->mapped < kept + REGION_SIZE || !rest || !page_map_is_prepared(base))
        return false;
    list_remove(&rest->by_size);
    *rest = (struct big){.region = {REGION_BIG, base}, .part = big->part, .huge = big->huge};
    rest->mapped = big->mapped - kept;
    rest->dirty = big->dirty > kept ? big->dirty - kept : 0;
    page_map_register(&rest->region);
    KEEP_STORE_ORDER();
    big->mapped = kept;
    big->dirty = size_min(big->dirty, kept);
    poison(base, rest->mapped);
    link(rest, big->after);
    link(big, rest);
    take_in(part, rest);
    return true;
}

/* A search looks at no more than so many mappings that turn out not to fit. */
enum { TRIES_MAX = 16 };

/* The first mapping of at least `size` bytes in the lists from its own on. */
static struct big *find(const struct shelf *shelf, size_t size, size_t alignment)
{
    unsigned length = length_of(size), tries = 0;
    for (;; length++) {
        length = bitmap_find(shelf->lengths, length, LENGTH_COUNT, true);
        if (length == LENGTH_COUNT)
            return NULL;
        for (struct list_node *node = shelf->by_size[length].first; node; node = node->next) {
            struct big *big = CONTAINER_OF(node, struct big, by_size);
            if (big->mapped >= size && ((uintptr_t)big->region.base & (alignment - 1)) == 0)
                return big;
            if (++tries == TRIES_MAX)
                return NULL;
        }
    }
}

/* The longest of those that are shorter, but at least half as long. */
static struct big *find_shorter(const struct shelf *shelf, size_t size)
{
    for (unsigned length = length_of(size) + 1; length-- > length_of(size / 2);) {
        struct big *big = LIST_ENTRY(shelf->by_size[length].first, struct big, by_size);
        if (big && big->mapped >= size / 2)
            return big;
    }
    return NULL;
}

static void hand_out(struct part *part, struct big *big)
{
    big->live = true;
    part->allocated++;
    add_live(part, big->mapped);
}

/* ---- Sums over all parts --------------------------------------------------------------------- */

unsigned big_cache_parts(void)
{
    return ATOMIC_LOAD_RELAXED(&parts_used);
}

static void use_part(unsigned part)
{
    unsigned used = big_cache_parts();
    while (UNLIKELY(used <= part) &&
           !__atomic_compare_exchange_n(
               &parts_used, &used, part + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
}

/* The sum of a field of `parts`, of which this is the first. */
static size_t sum(const size_t *first)
{
    size_t total = 0;
    for (unsigned i = 0; i < big_cache_parts(); i++)
        total += ATOMIC_LOAD_RELAXED((const size_t *)((const char *)first + i * sizeof *parts));
    return total;
}

size_t big_live_bytes(void)
{
    return sum(&parts[0].live_bytes);
}

size_t big_cache_bytes(void)
{
    return sum(&parts[0].bytes[DIRTY]);
}

size_t big_cache_mapped(void)
{
    return sum(&parts[0].mapped_bytes);
}

/* So many dirty bytes may be cached, and mappings of so many bytes that are clean. */
static size_t bytes_max(void)
{
    size_t least = (size_t)POLICY(big_cache_mib) * MIB;
    return least ? least + big_live_bytes() / 100 * (size_t)POLICY(retain_percent) : 0;
}

size_t big_cache_unused(enum idle_watcher watcher)
{
    size_t unused = 0;
    for (unsigned i = 0; i < big_cache_parts(); i++) {
        lock_acquire(&parts[i].lock);
        unused += idle_ask(&parts[i].unused, watcher, parts[i].bytes[DIRTY]);
        lock_release(&parts[i].lock);
    }
    return unused;
}

size_t big_cache_excess(void)
{
    size_t peak = 0, resident = big_live_bytes() + big_cache_bytes();
    for (unsigned i = 0; i < big_cache_parts(); i++)
        peak += size_max(
            ATOMIC_LOAD_RELAXED(&parts[i].live_peak),
            ATOMIC_LOAD_RELAXED(&parts[i].live_peak_before));
    return resident - size_min(resident, peak + peak / 100 * (size_t)POLICY(retain_percent));
}

void big_cache_tick(void)
{
    for (unsigned i = 0; i < big_cache_parts(); i++) {
        struct part *part = &parts[i];
        lock_acquire(&part->lock);
        ATOMIC_STORE_RELAXED(&part->live_peak_before, part->live_peak);
        ATOMIC_STORE_RELAXED(&part->live_peak, part->live_bytes);
        lock_release(&part->lock);
    }
}

struct big_stats big_stats(void)
{
    struct big_stats stats = {0};
    for (unsigned i = 0; i < big_cache_parts(); i++) {
        const struct part *part = &parts[i];
        lock_acquire(&parts[i].lock);
        stats.allocated += part->allocated;
        stats.freed += part->freed;
        stats.live_bytes += part->live_bytes;
        stats.cached_bytes += part->bytes[DIRTY];
        stats.clean_bytes += part->mapped_bytes - part->bytes[DIRTY];
        lock_release(&parts[i].lock);
    }
    stats.live_blocks = stats.allocated - stats.freed;
    return stats;
}

/* ---- Mappings come and go -------------------------------------------------------------------- */

/* Takes the lock, with a record at hand for a split if there is memory for one. */
static void lock_with_spare(struct part *part)
{
    lock_acquire(&part->lock);
    if (LIKELY(part->spares.first != NULL))
        return;
    lock_release(&part->lock);
    struct big *spare = metadata_alloc(sizeof *spare);
    lock_acquire(&part->lock);
    if (spare)
        list_push(&part->spares, &spare->by_size);
}

struct big *big_cache_add(unsigned part_index, char *base, size_t size, size_t used)
{
    if (!page_map_prepare(base) || !page_map_prepare(base + size - 1))
        return NULL;
    struct part *part = &parts[part_index];
    struct big *big = metadata_alloc(sizeof *big);
    if (!big)
        return NULL;
    *big = (struct big){.region = {REGION_BIG, base}, .mapped = size, .part = part_index};
    use_part(part_index);
    lock_with_spare(part);
    page_map_register(&big->region);
    struct big *newest = part->newest;
    if (newest && base + size == newest->region.base)
        link(big, newest);
    else if (newest && newest->region.base + newest->mapped == base)
        link(newest, big);
    part->newest = big;
    split(part, big, used);
    hand_out(part, big);
    lock_release(&part->lock);
    return big;
}

/* Before a mapping that is in nobody's hand but the caller's is unmapped. Lock held. */
static void forget(struct part *part, struct big *big)
{
    unlink(part, big);
    page_map_unregister(&big->region);
}

static bool unmap(struct big *big)
{
    if (os_unmap(big->region.base, big->mapped)) {
        metadata_free(big, sizeof *big);
        return true;
    }
    /* The system could not split a mapping: give at least the memory back. */
    struct part *part = &parts[big->part];
    if (os_purge(big->region.base, big->dirty))
        big->dirty = 0;
    poison(big->region.base, big->mapped);
    lock_acquire(&part->lock);
    page_map_register(&big->region);
    insert(part, big);
    lock_release(&part->lock);
    return false;
}

/* Takes the oldest mapping off a shelf of the part that has most there; to be forgotten, or not. */
static struct big *take_oldest(unsigned shelf, bool ends)
{
    size_t most = 0;
    struct part *part = &parts[0];
    for (unsigned i = 0; i < big_cache_parts(); i++) {
        size_t bytes = ATOMIC_LOAD_RELAXED(&parts[i].bytes[shelf]);
        if (bytes > most) {
            most = bytes;
            part = &parts[i];
        }
    }
    lock_acquire(&part->lock);
    struct big *big = LIST_ENTRY(part->shelf[shelf].by_age.first, struct big, by_age);
    if (big) {
        extract(part, big);
        if (ends) {
            forget(part, big);
            note_unused(part);
        }
    }
    lock_release(&part->lock);
    return big;
}

/* Unmaps what is on a shelf, oldest first, until no more than so many bytes are left there. Returns
 * the dirty ones that went. */
static size_t clear_shelf(unsigned shelf, size_t left)
{
    size_t gone = 0;
    struct big *big;
    while (sum(&parts[0].bytes[shelf]) > left && (big = take_oldest(shelf, true)) != NULL) {
        size_t dirty = big->dirty;
        if (!unmap(big))
            break;
        gone += dirty;
    }
    return gone;
}

/* Gives at most so much back of the mapping that was dirty for longest; 0: there is none. */
static size_t evict_oldest(size_t bytes)
{
    struct big *big = take_oldest(DIRTY, false);
    if (!big)
        return 0;
    struct part *part = &parts[big->part];
    size_t evicted = size_min(round_up(bytes, os_page_size()), big->dirty);
    bool purged = os_purge(big->region.base + big->dirty - evicted, evicted);
    lock_acquire(&part->lock);
    if (purged) {
        big->dirty -= evicted;
        take_in(part, big);
    } else {
        evicted = big->dirty;
        forget(part, big);
    }
    note_unused(part);
    lock_release(&part->lock);
    return purged || unmap(big) ? evicted : 0;
}

size_t big_cache_evict(size_t bytes)
{
    size_t evicted = 0, size;
    while (evicted < bytes && (size = evict_oldest(bytes - evicted)) != 0)
        evicted += size;
    clear_shelf(CLEAN, bytes_max());
    return evicted;
}

size_t big_cache_empty(void)
{
    return clear_shelf(DIRTY, 0) + clear_shelf(CLEAN, 0);
}

static void keep_bound(size_t bound)
{
    size_t bytes = big_cache_bytes();
    if (bytes > bound)
        big_cache_evict(bytes - bound);
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* A fitting mapping of the part; from another thread's one without dirty bytes is not worth it. */
static struct big *take_from(struct part *part, size_t size, size_t alignment, bool own)
{
    lock_with_spare(part);
    struct big *big = find(&part->shelf[DIRTY], size, alignment);
    if (!big && own)
        big = find(&part->shelf[CLEAN], size, alignment);
    if (big) {
        extract(part, big);
        split(part, big, size);
        hand_out(part, big);
        note_unused(part);
    }
    lock_release(&part->lock);
    return big;
}

struct big *big_cache_take(unsigned part, size_t size, size_t alignment)
{
    /* Before its lock is taken: a child of fork looks at those of used parts. */
    use_part(part);
    struct big *big = take_from(&parts[part], size, alignment, true);
    for (unsigned i = 0; !big && i < big_cache_parts(); i++)
        if (i != part && ATOMIC_LOAD_RELAXED(&parts[i].bytes[DIRTY]) >= size)
            big = take_from(&parts[i], size, alignment, false);
    return big;
}

struct big *big_cache_take_shorter(unsigned part_index, size_t size)
{
    struct part *part = &parts[part_index];
    lock_acquire(&part->lock);
    struct big *big = find_shorter(&part->shelf[DIRTY], size);
    if (big) {
        extract(part, big);
        unlink(part, big);
        big->live = true;
        note_unused(part);
    }
    lock_release(&part->lock);
    return big;
}

bool big_cache_retire(struct big *big, const void *block)
{
    struct part *part = &parts[big->part];
    lock_acquire(&part->lock);
    bool live = big->live && block == big->region.base;
    if (LIKELY(live)) {
        big->live = false;
        part->freed++;
        add_bytes(&part->live_bytes, -big->mapped);
    }
    lock_release(&part->lock);
    return live;
}

void big_cache_put(struct big *big)
{
    struct part *part = &parts[big->part];
    size_t bound = bytes_max();
    bool kept = big->mapped <= bound;
    poison(big->region.base, big->mapped);
    lock_acquire(&part->lock);
    big->live = false;
    if (kept)
        take_in(part, big);
    else
        forget(part, big);
    lock_release(&part->lock);
    if (!kept)
        unmap(big);
    keep_bound(bound);
}

bool big_cache_lengthen(struct big *big, size_t size)
{
    struct part *part = &parts[big->part];
    lock_with_spare(part);
    struct big *after = big->after;
    size_t before = big->mapped;
    bool fits = touch(big, after) && after->cached && before + after->mapped >= size;
    if (fits) {
        extract(part, after);
        big->zeroed &= after->dirty == 0;
        join(part, big, after);
        split(part, big, size);
        add_live(part, big->mapped - before);
        note_unused(part);
    }
    lock_release(&part->lock);
    return fits;
}

bool big_cache_shorten(struct big *big, size_t size)
{
    struct part *part = &parts[big->part];
    size_t before = big->mapped, bound = bytes_max();
    if (before - size > bound)
        return false;
    lock_with_spare(part);
    big->dirty = before;
    bool done = split(part, big, size);
    if (done)
        add_bytes(&part->live_bytes, big->mapped - before);
    lock_release(&part->lock);
    keep_bound(bound);
    return done;
}

void big_cache_leave(struct big *big)
{
    struct part *part = &parts[big->part];
    lock_acquire(&part->lock);
    add_bytes(&part->live_bytes, -big->mapped);
    unlink(part, big);
    lock_release(&part->lock);
}

void big_cache_return(struct big *big, bool new)
{
    struct part *part = &parts[big->part];
    lock_acquire(&part->lock);
    part->allocated += new;
    add_live(part, big->mapped);
    lock_release(&part->lock);
}

struct lock *big_lock(unsigned part)
{
    return &parts[part].lock;
}

/* ---- Repair and check ------------------------------------------------------------------------ */

void big_cache_repair(unsigned part_index)
{
    struct part *part = &parts[part_index];
    uint64_t live_blocks = 0;
    struct big *low = NULL;
    memset(part->shelf, 0, sizeof part->shelf);
    part->live_bytes = part->bytes[DIRTY] = part->bytes[CLEAN] = part->mapped_bytes = 0;
    part->newest = NULL;
    part->spares.first = NULL;
    for (struct region *region = NULL; (region = page_map_next(region)) != NULL;) {
        struct big *big = (struct big *)region;
        if (region->kind != REGION_BIG || big->part != part_index)
            continue;
        big->before = big->after = NULL;
        if (touch(low, big))
            link(low, big);
        low = big;
        if (big->live) {
            live_blocks++;
            part->live_bytes += big->mapped;
        } else if (big->cached) {
            insert(part, big);
        }
    }
    part->freed = part->allocated - (live_blocks < part->allocated ? live_blocks : part->allocated);
    note_unused(part);
}

static void check_shelf(struct part *part, unsigned index, size_t *bytes, size_t *mapped)
{
    const struct shelf *shelf = &part->shelf[index];
    size_t count = 0;
    for (unsigned length = 0; length < LENGTH_COUNT; length++) {
        struct list_node *node = shelf->by_size[length].first;
        ASSERT(bitmap_test(shelf->lengths, length) == (node != NULL));
        for (; node; node = node->next, count++) {
            struct big *big = CONTAINER_OF(node, struct big, by_size);
            ASSERT(big->cached && !big->live && length_of(big->mapped) == length);
            ASSERT(&parts[big->part] == part && shelf_of(big) == index);
            ASSERT(big->dirty <= big->mapped && list_contains(&big->by_age));
            ASSERT(page_map_lookup(big->region.base) == &big->region);
            *bytes += big->dirty ? big->dirty : big->mapped;
            *mapped += big->mapped;
        }
    }
    for (struct list_node *node = shelf->by_age.first; node; node = node->next)
        count--;
    ASSERT(count == 0);
}

static void check_neighbours(const struct part *part)
{
    size_t live = 0, cached = 0, blocks = 0;
    for (struct region *region = NULL; (region = page_map_next(region)) != NULL;) {
        const struct big *big = (struct big *)region;
        if (region->kind != REGION_BIG || &parts[big->part] != part)
            continue;
        const struct big *after = big->after;
        ASSERT(!after || (after->before == big && after->part == big->part));
        ASSERT(!after || big->region.base + big->mapped == after->region.base);
        ASSERT(!big->before || big->before->after == big);
        ASSERT(!(big->cached && after && after->cached && may_join(big, after)));
        live += big->live ? big->mapped : 0;
        blocks += big->live;
        cached += big->cached ? big->mapped : 0;
    }
    ASSERT(live == part->live_bytes && blocks == part->allocated - part->freed);
    ASSERT(cached == part->mapped_bytes);
}

void big_cache_check(void)
{
    for (unsigned i = 0; i < BIG_PARTS; i++) {
        size_t bytes[SHELVES] = {0}, mapped = 0;
        struct part *part = &parts[i];
        lock_acquire(&part->lock);
        for (unsigned shelf = 0; shelf < SHELVES; shelf++)
            check_shelf(part, shelf, &bytes[shelf], &mapped);
        ASSERT(bytes[DIRTY] == part->bytes[DIRTY] && bytes[CLEAN] == part->bytes[CLEAN]);
        ASSERT(mapped == part->mapped_bytes);
        check_neighbours(part);
        lock_release(&part->lock);
    }
}
