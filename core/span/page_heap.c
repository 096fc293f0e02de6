/* See page_heap.h. */
#include "span/page_heap.h"

#include <string.h>

#include "base/assert.h"
#include "base/poison.h"
#include "base/pressure.h"
#include "base/tuning.h"
#include "hardened.h"
#include "map/metadata.h"
#include "os/os.h"
#include "span/huge.h"

struct page_heap_part page_heap_part[SHARD_PARTS_MAX];
static unsigned part_count = 1; /* atomic relaxed, any thread: parts in use */

static char *next_base; /* atomic relaxed, any thread: wanted address of the next superslab */

static struct page_heap_part *part_of(const struct superslab *superslab)
{
    return &page_heap_part[superslab->part];
}

unsigned page_heap_parts(void)
{
    return ATOMIC_LOAD_RELAXED(&part_count);
}

void page_heap_use_part(unsigned part)
{
    unsigned before = page_heap_parts();
    while (UNLIKELY(before <= part) &&
           !__atomic_compare_exchange_n(
               &part_count, &before, part + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
}

/* ---- One part; the lock is held -------------------------------------------------------------- */

static void link_by_run(struct superslab *superslab)
{
    struct page_heap_part *part = part_of(superslab);
    superslab->listed_run = (uint8_t)superslab_longest_run(superslab);
    list_push(&part->by_run[superslab->listed_run], &superslab->by_run);
    bitmap_set(&part->runs, superslab->listed_run);
}

static void unlink_by_run(struct superslab *superslab)
{
    struct page_heap_part *part = part_of(superslab);
    list_remove(&superslab->by_run);
    if (!part->by_run[superslab->listed_run].first)
        bitmap_clear(&part->runs, superslab->listed_run);
}

/* Puts the superslab on the lists that fit its state. */
static void relist(struct superslab *superslab)
{
    unlink_by_run(superslab);
    link_by_run(superslab);
    bool dirt = superslab->dirty_free_pages != 0;
    if (dirt && !list_contains(&superslab->by_dirt))
        list_push(&part_of(superslab)->by_dirt, &superslab->by_dirt);
    if (!dirt && list_contains(&superslab->by_dirt))
        list_remove(&superslab->by_dirt);
}

static void lower_unused(struct page_heap_part *part)
{
    idle_lower(&part->unused, part->stats.dirty_free_pages);
}

static unsigned take_run(struct superslab *superslab, struct run run)
{
    struct page_heap_part *part = part_of(superslab);
    unsigned dirty = superslab_take(superslab, run);
    COUNTER_ADD(&part->stats.used_pages, (size_t)run.units * UNIT_PAGES);
    COUNTER_ADD(&part->stats.dirty_free_pages, -(size_t)dirty);
    lower_unused(part);
    relist(superslab);
    return dirty;
}

static void put_run(struct superslab *superslab, struct run run, unsigned dirty_pages)
{
    struct page_heap_part *part = part_of(superslab);
    size_t dirty_before = superslab->dirty_free_pages;
    superslab_put(superslab, run, dirty_pages);
    COUNTER_ADD(&part->stats.used_pages, -((size_t)run.units * UNIT_PAGES));
    COUNTER_ADD(&part->stats.dirty_free_pages, superslab->dirty_free_pages - dirty_before);
    relist(superslab);
}

/* While the page map knows it, a superslab is on the lists. */
static void insert(struct superslab *superslab)
{
    page_map_register(&superslab->region);
    link_by_run(superslab);
    COUNTER_ADD(&part_of(superslab)->stats.superslabs, 1);
}

/* Takes a wholly free superslab off its lists. */
static void extract(struct superslab *superslab)
{
    struct page_heap_part *part = part_of(superslab);
    page_map_unregister(&superslab->region);
    unlink_by_run(superslab);
    if (list_contains(&superslab->by_dirt))
        list_remove(&superslab->by_dirt);
    COUNTER_ADD(&part->stats.dirty_free_pages, -(size_t)superslab->dirty_free_pages);
    lower_unused(part);
    COUNTER_ADD(&part->stats.superslabs, (size_t)-1);
}

/* Finds a run with most dirty pages, among those of RUN_TRIES superslabs with the shortest runs
 * that serve; false: there is none. An aligned request may not fit into a run that is long enough:
 * then tries as many superslabs of each length. */
static bool find_run(
    const struct page_heap_part *part, unsigned units, unsigned alignment, unsigned first,
    struct unit_run *found)
{
    int most = -1, all = (int)(units * UNIT_PAGES);
    for (unsigned length = units, tries = 0;; length++) {
        length = bitmap_find(&part->runs, length, SUPERSLAB_UNITS + 1, true);
        if (length > SUPERSLAB_UNITS)
            return most >= 0;
        struct list_node *node = part->by_run[length].first;
        for (unsigned here = 0; node && here < RUN_TRIES; node = node->next, here++, tries++) {
            if (most == all || (most >= 0 && tries >= RUN_TRIES))
                return true;
            struct superslab *superslab = CONTAINER_OF(node, struct superslab, by_run);
            struct run run;
            int dirty = superslab->dirty_free_pages > most
                            ? superslab_find(superslab, units, alignment, first, &run)
                            : -1;
            if (dirty > most) {
                most = dirty;
                *found = (struct unit_run){superslab, run, (unsigned)dirty};
            }
        }
    }
}

/* ---- Taking and putting ---------------------------------------------------------------------- */

/* Prepares the class maps, which heaps read, for the superslab. */
static bool prepare_class_map(const char *base)
{
    return (class_map.limit || class_map_init(base)) && class_map_prepare(base);
}

/* A superslab for the part, on no list yet; NULL: no memory is left. */
static struct superslab *map_superslab(unsigned part)
{
    struct superslab *superslab = metadata_alloc(sizeof *superslab);
    if (!superslab)
        return NULL;
    char *hint = hardened_place(ATOMIC_LOAD_RELAXED(&page_heap_part[part].stats.superslabs));
    char *base = os_map(REGION_SIZE, REGION_SIZE, hint ? hint : ATOMIC_LOAD_RELAXED(&next_base));
    if (base) {
        superslab_init(superslab, base);
        superslab->part = (uint8_t)part;
        if (!hint)
            ATOMIC_STORE_RELAXED(&next_base, base - REGION_SIZE);
        /* The page map first: the window must not lie around an address that it refuses. */
        if (page_map_prepare(base) && (HARDENED || prepare_class_map(base))) {
            poison(base, REGION_SIZE);
            huge_refuse(base, REGION_SIZE);
            hardened_start_superslab(superslab);
            return superslab;
        }
        os_discard(base, REGION_SIZE);
    }
    metadata_free(superslab, sizeof *superslab);
    return NULL;
}

/* Takes a run of the part with no more than `clean_most` bytes of clean pages. Before, inserts the
 * superslab `fresh`, if there is one: under the same lock, or a purge could unmap it again. */
static bool take_from_part(
    unsigned part, unsigned units, unsigned alignment, size_t clean_most, struct superslab *fresh,
    struct unit_run *taken)
{
    struct page_heap_part *from = &page_heap_part[part];
    lock_acquire(&from->lock);
    if (fresh)
        insert(fresh);
    unsigned first = hardened_first_unit();
    bool takes = find_run(from, units, alignment, first, taken) &&
                 (units * UNIT_PAGES - taken->dirty_pages) * PAGE_SIZE <= clean_most;
    if (takes)
        take_run(taken->superslab, taken->run);
    lock_release(&from->lock);
    if (takes)
        unpoison(superslab_address(taken->superslab, taken->run.first), units * UNIT_SIZE);
    return takes;
}

/* Takes a run from any other part with at least `dirty_min` free dirty pages. */
static bool take_from_others(
    unsigned part, unsigned units, unsigned alignment, size_t clean_most, size_t dirty_min,
    struct unit_run *taken)
{
    for (unsigned i = 0; i < page_heap_parts(); i++)
        if (i != part &&
            ATOMIC_LOAD_RELAXED(&page_heap_part[i].stats.dirty_free_pages) >= dirty_min &&
            take_from_part(i, units, alignment, clean_most, NULL, taken))
            return true;
    return false;
}

bool page_heap_take(
    unsigned part, unsigned units, unsigned alignment, bool may_grow, struct unit_run *taken)
{
    struct superslab *fresh = NULL;
    size_t pages = (size_t)units * UNIT_PAGES;
    size_t clean_most = may_grow ? SIZE_MAX : reclaim_clean_most();
    page_heap_use_part(part);
    do {
        if (take_from_part(part, units, alignment, clean_most, fresh, taken) ||
            take_from_others(part, units, alignment, clean_most, pages, taken))
            return true;
        if (!may_grow)
            return false;
        reclaim_before_growth(REGION_SIZE, false);
    } while ((fresh = map_superslab(part)) != NULL);
    return take_from_others(part, units, alignment, SIZE_MAX, 0, taken);
}

bool page_heap_init(void)
{
    struct unit_run first;
    if (class_map.limit)
        return true;
    if (!page_heap_take(0, 1, 1, true, &first))
        return false;
    page_heap_put(first.superslab, first.run, 0);
    return true;
}

bool page_heap_take_at(struct superslab *superslab, struct run run)
{
    if (run.first + run.units > SUPERSLAB_UNITS)
        return false;
    uint32_t units = (uint32_t)bitmap_word_mask(0, run.first, run.units);
    struct lock *lock = &part_of(superslab)->lock;
    lock_acquire(lock);
    bool free = (superslab->free_units & units) == units;
    unsigned dirty = free ? take_run(superslab, run) : 0;
    lock_release(lock);
    if (!free)
        return false;
    unpoison(superslab_address(superslab, run.first), run.units * UNIT_SIZE);
    pressure_taken(run.units * UNIT_SIZE - dirty * PAGE_SIZE, false);
    return true;
}

/* True if more pages lie free beside the used ones than may stay free. Reads other parts' counts,
 * which their threads write, only if this part may cause an excess, or is too small to tell. */
static bool has_excess(size_t dirty, size_t used)
{
    size_t keep = pressure_keep(used * PAGE_SIZE);
    if (dirty * PAGE_SIZE <= keep && keep > pressure_bound(0))
        return false;
    struct page_heap_stats all = page_heap_stats();
    return all.dirty_free_pages * PAGE_SIZE > pressure_keep(all.used_pages * PAGE_SIZE);
}

void page_heap_put(struct superslab *superslab, struct run run, unsigned dirty_pages)
{
    struct page_heap_part *part = part_of(superslab);
    poison(superslab_address(superslab, run.first), run.units * UNIT_SIZE);
    lock_acquire(&part->lock);
    put_run(superslab, run, dirty_pages);
    size_t dirty = part->stats.dirty_free_pages, used = part->stats.used_pages;
    lock_release(&part->lock);
    if (!pressure_is_armed_anew() && has_excess(dirty, used))
        pressure_arm();
}

/* ---- Purging --------------------------------------------------------------------------------- */

static bool is_wholly_free(const struct superslab *superslab)
{
    return superslab->free_units == UINT32_MAX;
}

/* How early a superslab is purged: those that can be unmapped then come first, and of these the one
 * that is nearly clean; then the dirtiest. */
static unsigned urgency(const struct superslab *superslab)
{
    unsigned dirty = superslab->dirty_free_pages;
    return is_wholly_free(superslab) ? 2 * SUPERSLAB_PAGES - dirty : dirty;
}

/* The most urgent superslab with free dirty pages that neither this round nor a later one has seen,
 * among the first DIRTY_CANDIDATES, or the first one behind these; NULL: none. Lock held. */
static struct superslab *dirtiest(const struct page_heap_part *part, uint64_t round)
{
    struct superslab *best = NULL;
    struct list_node *node = part->by_dirt.first;
    for (int left = DIRTY_CANDIDATES; node && (left > 0 || !best); left--, node = node->next) {
        struct superslab *superslab = CONTAINER_OF(node, struct superslab, by_dirt);
        if (superslab->purge_round < round && (!best || urgency(superslab) > urgency(best)))
            best = superslab;
    }
    return best;
}

/* A wholly free superslab that neither this round nor a later one has seen, or NULL. Lock held. */
static struct superslab *wholly_free(const struct page_heap_part *part, uint64_t round)
{
    struct list_node *node = part->by_run[SUPERSLAB_UNITS].first;
    struct superslab *superslab = LIST_ENTRY(node, struct superslab, by_run);
    return superslab && superslab->purge_round < round ? superslab : NULL;
}

/* True if memory of the superslab may go. Unless it is needed, it stays while the program observes
 * a part of it (userfaultfd): whoever gives that back waits for the observer, which may be the
 * calling thread. A question for less would miss the borders of what is observed beside it. Lock
 * not held. */
static bool may_go(const struct superslab *superslab, bool everything)
{
    return HARDENED || everything || pressure_is_near() ||
           os_is_one_mapping(superslab->region.base, REGION_SIZE);
}

bool page_heap_purge_pages(struct superslab *superslab, void *address, size_t size, bool everything)
{
    return may_go(superslab, everything) && os_purge(address, size);
}

_Static_assert(UNIT_SIZE == 64 * KIB, "a unit is whole pages of any system");

/* Purges the free dirty pages of one superslab, up to `bytes`; returns bytes purged. Called and
 * returns with the lock held, releases it in between: meanwhile a run of the superslab is taken, so
 * that no other thread can unmap it. */
static size_t purge_superslab(struct superslab *superslab, size_t bytes, bool everything)
{
    struct page_heap_part *part = part_of(superslab);
    size_t purged = 0;
    struct run run;
    for (unsigned unit = 0; purged < bytes && superslab_next_dirty(superslab, unit, &run);) {
        char *start = superslab_address(superslab, run.first);
        run.units = (unsigned)size_min(run.units, (bytes - purged - 1) / UNIT_SIZE + 1);
        unit = run.first + run.units;
        unsigned dirty = take_run(superslab, run);
        lock_release(&part->lock);
        bool clean = page_heap_purge_pages(superslab, start, run.units * UNIT_SIZE, everything);
        lock_acquire(&part->lock);
        if (clean)
            superslab_clean(superslab, run);
        put_run(superslab, run, 0);
        purged += clean ? dirty * PAGE_SIZE : 0;
    }
    return purged;
}

static void free_record(struct superslab *superslab)
{
    for (unsigned alignment = 0; alignment < SUPERSLAB_ALIGNMENTS - 1; alignment++)
        if (superslab->more_slab_records[alignment])
            metadata_free(
                superslab->more_slab_records[alignment], superslab_records_size(alignment));
    metadata_free(superslab, sizeof *superslab);
}

/* Unmaps a wholly free superslab. Called and returns with the lock held. */
static size_t unmap_superslab(struct superslab *superslab, bool everything)
{
    struct page_heap_part *part = part_of(superslab);
    size_t dirty = superslab->dirty_free_pages * PAGE_SIZE;
    extract(superslab);
    lock_release(&part->lock);
    char *base = superslab->region.base;
    bool unmapped = may_go(superslab, everything) && os_unmap(base, REGION_SIZE);
    if (unmapped) {
        hardened_end_superslab(superslab);
        free_record(superslab);
    }
    lock_acquire(&part->lock);
    if (unmapped)
        return dirty;
    /* It may not go, or the system could not split a mapping: keep the superslab. */
    poison(superslab->region.base, REGION_SIZE);
    insert(superslab);
    COUNTER_ADD(&part->stats.dirty_free_pages, superslab->dirty_free_pages);
    relist(superslab);
    return 0;
}

/* The system refuses to purge locked memory: a purge gives up after REFUSALS_MAX such superslabs,
 * and leaves them alone for REFUSED_ROUNDS rounds, or each purge would look at all of them again. A
 * purge of everything tries all again. */
static size_t purge_part(struct page_heap_part *part, size_t bytes)
{
    size_t purged = 0;
    unsigned refusals = 0;
    bool everything = bytes == SIZE_MAX;
    lock_acquire(&part->lock);
    uint64_t round = part->purge_round += everything ? REFUSED_ROUNDS + 1 : 1;
    while (purged < bytes) {
        bool asks = everything || refusals < REFUSALS_MAX;
        struct superslab *superslab = asks ? dirtiest(part, round) : NULL;
        if (!superslab)
            superslab = wholly_free(part, round);
        if (!superslab)
            break;
        superslab->purge_round = round;
        /* A step, of few bytes, purges it piece by piece first. */
        bool last = page_heap_stats().superslabs == 1;
        bool at_once = !last && is_wholly_free(superslab) && bytes >= REGION_SIZE;
        size_t clean = at_once ? 0 : purge_superslab(superslab, bytes - purged, everything);
        purged += clean;
        /* Also if the system refuses to purge it. */
        bool done = !clean || !superslab->dirty_free_pages;
        if (!last && is_wholly_free(superslab) && done) {
            purged += unmap_superslab(superslab, everything);
        } else if (!clean && superslab->dirty_free_pages) {
            superslab->purge_round = round + REFUSED_ROUNDS;
            refusals++;
        }
    }
    lock_release(&part->lock);
    return purged;
}

size_t page_heap_purge(size_t bytes)
{
    size_t purged = 0, most = 0;
    unsigned count = page_heap_parts(), first = 0;
    for (unsigned i = 0; i < count; i++) {
        size_t dirty = ATOMIC_LOAD_RELAXED(&page_heap_part[i].stats.dirty_free_pages);
        first = dirty > most ? i : first;
        most = size_max(most, dirty);
    }
    for (unsigned i = 0; i < count && purged < bytes; i++)
        purged += purge_part(
            &page_heap_part[(first + i) % count], bytes == SIZE_MAX ? bytes : bytes - purged);
    return purged;
}

size_t page_heap_unused_pages(enum idle_watcher watcher)
{
    size_t unused = 0;
    for (unsigned i = 0; i < page_heap_parts(); i++) {
        struct page_heap_part *part = &page_heap_part[i];
        lock_acquire(&part->lock);
        unused += idle_ask(&part->unused, watcher, part->stats.dirty_free_pages);
        lock_release(&part->lock);
    }
    return unused;
}

struct page_heap_stats page_heap_stats(void)
{
    struct page_heap_stats all = {0};
    for (unsigned i = 0; i < page_heap_parts(); i++) {
        const struct page_heap_stats *stats = &page_heap_part[i].stats;
        all.superslabs += ATOMIC_LOAD_RELAXED(&stats->superslabs);
        all.used_pages += ATOMIC_LOAD_RELAXED(&stats->used_pages);
        all.dirty_free_pages += ATOMIC_LOAD_RELAXED(&stats->dirty_free_pages);
    }
    return all;
}

/* ---- Repair ---------------------------------------------------------------------------------- */

static size_t used_pages(const struct superslab *superslab)
{
    return bits_count((uint32_t)~superslab->free_units) * (size_t)UNIT_PAGES;
}

static void reinsert(struct superslab *superslab)
{
    struct page_heap_part *part = part_of(superslab);
    superslab->by_run.link = superslab->by_dirt.link = NULL;
    superslab_repair(superslab);
    insert(superslab);
    if (superslab->dirty_free_pages)
        list_push(&part->by_dirt, &superslab->by_dirt);
    COUNTER_ADD(&part->stats.used_pages, used_pages(superslab));
    COUNTER_ADD(&part->stats.dirty_free_pages, superslab->dirty_free_pages);
}

void page_heap_repair(unsigned part_index)
{
    struct page_heap_part *part = &page_heap_part[part_index];
    memset(part->by_run, 0, sizeof part->by_run);
    part->runs = 0;
    memset(&part->stats, 0, sizeof part->stats);
    part->by_dirt.first = NULL;
    for (struct region *region = NULL; (region = page_map_next(region)) != NULL;) {
        struct superslab *superslab = (struct superslab *)region;
        if (region->kind == REGION_SUPERSLAB && superslab->part == part_index)
            reinsert(superslab);
    }
    lower_unused(part);
}
