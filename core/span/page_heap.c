/* See page_heap.h. */
#include "span/page_heap.h"

#include <string.h>

#include "base/assert.h"
#include "base/poison.h"
#include "base/pressure.h"
#include "map/metadata.h"
#include "os/os.h"

static struct {
    struct lock lock CACHE_ALIGNED;
    struct list by_run[SUPERSLAB_PAGES + 1]; /* lock: by the bound on free runs */
    /* lock: by the largest group of free units, then by number of free units */
    struct list by_unit[SUPERSLAB_GROUPS][SUPERSLAB_UNITS + 1];
    struct list by_dirt;                /* lock: with free dirty pages */
    uint64_t runs[SUPERSLAB_WORDS + 1]; /* lock: bit per non-empty list of by_run */
    uint64_t units[SUPERSLAB_GROUPS];   /* lock: bit per non-empty list of by_unit */
    struct page_heap_stats stats;       /* lock */
    char *hint;                         /* lock: where the next superslab should be */
    struct idle unused;                 /* lock: of free dirty pages */
    uint64_t purge_round;               /* lock */
} heap;

/* Lock held. */
static void link_by_run(struct superslab *superslab)
{
    unsigned run = superslab->longest_run;
    list_push(&heap.by_run[run], &superslab->by_run);
    bitmap_set(heap.runs, run);
    superslab->listed_run = (uint16_t)run;
}

/* Lock held. */
static void unlink_by_run(struct superslab *superslab)
{
    list_remove(&superslab->by_run);
    if (!heap.by_run[superslab->listed_run].first)
        bitmap_clear(heap.runs, superslab->listed_run);
}

/* Lock held. */
static void link_by_unit(struct superslab *superslab, unsigned group, unsigned units)
{
    list_push(&heap.by_unit[group][units], &superslab->by_unit);
    bitmap_set(&heap.units[group], units);
    superslab->listed_group = (uint8_t)group;
    superslab->listed_units = (uint8_t)units;
}

/* Lock held. */
static void unlink_by_unit(struct superslab *superslab)
{
    unsigned group = superslab->listed_group, units = superslab->listed_units;
    list_remove(&superslab->by_unit);
    if (!heap.by_unit[group][units].first)
        bitmap_clear(&heap.units[group], units);
}

/* Puts the superslab on the lists that its state asks for. Lock held. */
static void relink(struct superslab *superslab)
{
    unsigned units = bits_count(superslab->free_units), group = superslab_group(superslab);
    if (superslab->longest_run != superslab->listed_run) {
        unlink_by_run(superslab);
        link_by_run(superslab);
    }
    if (units != superslab->listed_units || group != superslab->listed_group) {
        unlink_by_unit(superslab);
        link_by_unit(superslab, group, units);
    }
    bool dirt = superslab->dirty_free_pages != 0;
    if (dirt && !list_contains(&superslab->by_dirt))
        list_push(&heap.by_dirt, &superslab->by_dirt);
    if (!dirt && list_contains(&superslab->by_dirt))
        list_remove(&superslab->by_dirt);
}

/* Lock held. */
static void lower_unused(void)
{
    idle_lower(&heap.unused, heap.stats.dirty_free_pages);
}

/* Lock held. */
static unsigned take_run(struct superslab *superslab, struct run run)
{
    unsigned dirty = superslab_take(superslab, run);
    heap.stats.used_pages += run.pages;
    heap.stats.dirty_free_pages -= dirty;
    lower_unused();
    relink(superslab);
    return dirty;
}

/* Lock held. */
static void put_run(struct superslab *superslab, struct run run, unsigned dirty_pages)
{
    unsigned dirty_before = superslab->dirty_free_pages;
    superslab_put(superslab, run, dirty_pages);
    heap.stats.used_pages -= run.pages;
    heap.stats.dirty_free_pages += superslab->dirty_free_pages - dirty_before;
    relink(superslab);
}

/* Lock held. */
static void insert(struct superslab *superslab)
{
    superslab->listed = true;
    link_by_run(superslab);
    link_by_unit(superslab, superslab_group(superslab), bits_count(superslab->free_units));
    heap.stats.superslabs++;
    heap.hint = superslab->region.base - REGION_SIZE;
}

/* Lock held. The superslab is wholly free. */
static void extract(struct superslab *superslab)
{
    superslab->listed = false;
    unlink_by_run(superslab);
    unlink_by_unit(superslab);
    if (list_contains(&superslab->by_dirt))
        list_remove(&superslab->by_dirt);
    heap.stats.dirty_free_pages -= superslab->dirty_free_pages;
    lower_unused();
    heap.stats.superslabs--;
}

static struct superslab *map_superslab(char *hint)
{
    struct superslab *superslab = metadata_alloc(sizeof *superslab);
    if (!superslab)
        return NULL;
    char *base = os_map(REGION_SIZE, REGION_SIZE, hint);
    if (base) {
        superslab_init(superslab, base);
        /* The page map first: the window must not lie around an address that it refuses. */
        if (page_map_prepare(base) && (class_map.limit || class_map_init(base)) &&
            class_map_prepare(base)) {
            page_map_register(&superslab->region);
            poison(base, REGION_SIZE);
            return superslab;
        }
        os_discard(base, REGION_SIZE);
    }
    metadata_free(superslab, sizeof *superslab);
    return NULL;
}

/* Maps a superslab that is on no list yet; NULL when no memory is left. */
static struct superslab *grow(enum growth growth)
{
    lock_acquire(&heap.lock);
    char *hint = heap.hint;
    lock_release(&heap.lock);
    struct superslab *superslab = map_superslab(hint);
    if (superslab) {
        superslab->huge = growth == GROWTH_HUGE_PAGE;
        /* Either way: the system may give huge pages to who does not ask. */
        os_advise_huge_pages(superslab->region.base, REGION_SIZE, superslab->huge);
    }
    return superslab;
}

/* Of the superslabs with a group of so many free units, a power of two, the fullest: the one with
 * the fewest free units; NULL when there is none. In constant time. Lock held. */
static struct superslab *find_group(unsigned units)
{
    struct superslab *best = NULL;
    for (unsigned group = bits_lowest(units) + 1; group < SUPERSLAB_GROUPS; group++) {
        if (!heap.units[group])
            continue;
        unsigned count = bits_lowest(heap.units[group]);
        if (!best || count < best->listed_units)
            best = CONTAINER_OF(heap.by_unit[group][count].first, struct superslab, by_unit);
    }
    return best;
}

/* Of the superslabs that may have a long enough run, those first that promise the shortest. Lock
 * held. */
static struct superslab *find_pages(unsigned pages, unsigned alignment, struct run *run)
{
    /* A search in vain for aligned pages leaves the bound as it is: a second one, without
     * alignment, puts it right. But a few superslabs pack better in the order in which they stand.
     * However many there are, no call looks at more than EFFORT_MAX: a large heap may rather grow.
     */
    enum { PATIENCE = 16, EFFORT_MAX = 64 };
    unsigned vain = 0;
    for (unsigned length = pages; vain < EFFORT_MAX; length++) {
        length = bitmap_find(heap.runs, length, SUPERSLAB_PAGES + 1, true);
        if (length > SUPERSLAB_PAGES)
            return NULL;
        struct list_node *node = heap.by_run[length].first, *next;
        for (; node && vain < EFFORT_MAX; node = next, vain++) {
            struct superslab *superslab = CONTAINER_OF(node, struct superslab, by_run);
            next = node->next;
            if (superslab_find(superslab, pages, alignment, run))
                return superslab;
            if (vain >= PATIENCE && alignment > 1)
                superslab_find(superslab, pages, 1, run);
            relink(superslab);
        }
    }
    /* Whole units are known without a search. */
    unsigned longer = pages > alignment ? pages : alignment, units = 1;
    while (units * UNIT_PAGES < longer)
        units *= 2;
    struct superslab *superslab = find_group(units);
    return superslab && superslab_find(superslab, pages, alignment, run) ? superslab : NULL;
}

/* Fullest first. Lock held. */
static struct superslab *find_units(unsigned units, struct run *run)
{
    struct superslab *superslab = find_group(units);
    return superslab && superslab_find_units(superslab, units, run) ? superslab : NULL;
}

static void describe(struct page_run *taken, struct superslab *superslab, struct run run)
{
    taken->superslab = superslab;
    taken->run = run;
    memcpy(taken->dirty, superslab->dirty, sizeof taken->dirty);
    taken->clean = take_run(superslab, run) == 0;
}

/* Takes `units` whole units, or, when that is 0, `pages` pages at a multiple of `alignment`. */
static bool take(
    unsigned units, unsigned pages, unsigned alignment, enum growth growth, struct page_run *taken)
{
    struct superslab *fresh = NULL;
    do {
        struct run run;
        lock_acquire(&heap.lock);
        /* Not before, or a purge could unmap it again. */
        if (fresh)
            insert(fresh);
        struct superslab *superslab =
            units ? find_units(units, &run) : find_pages(pages, alignment, &run);
        if (superslab)
            describe(taken, superslab, run);
        lock_release(&heap.lock);
        if (superslab) {
            unpoison(superslab_address(superslab, run.first), run.pages * PAGE_SIZE);
            return true;
        }
        if (growth == GROWTH_NONE)
            return false;
        reclaim_before_growth(REGION_SIZE);
    } while ((fresh = grow(growth)) != NULL);
    return false;
}

bool page_heap_take(unsigned pages, unsigned alignment, struct page_run *taken)
{
    return take(0, pages, alignment, GROWTH_SMALL_PAGES, taken);
}

bool page_heap_init(void)
{
    struct page_run first;
    if (class_map.limit)
        return true;
    if (!page_heap_take(1, 1, &first))
        return false;
    page_heap_put(first.superslab, first.run, 0);
    return true;
}

bool page_heap_take_units(unsigned units, enum growth growth, struct page_run *taken)
{
    return take(units, 0, 0, growth, taken);
}

bool page_heap_take_at(struct superslab *superslab, unsigned page, unsigned pages)
{
    if (page + pages > SUPERSLAB_PAGES)
        return false;
    lock_acquire(&heap.lock);
    bool free = bitmap_count_range(superslab->free, page, pages) == pages;
    if (free)
        take_run(superslab, (struct run){page, pages});
    lock_release(&heap.lock);
    if (free)
        unpoison(superslab_address(superslab, page), pages * PAGE_SIZE);
    return free;
}

void page_heap_put(struct superslab *superslab, struct run run, unsigned dirty_pages)
{
    poison(superslab_address(superslab, run.first), run.pages * PAGE_SIZE);
    lock_acquire(&heap.lock);
    put_run(superslab, run, dirty_pages);
    size_t dirty = heap.stats.dirty_free_pages, used = heap.stats.used_pages;
    lock_release(&heap.lock);
    if (dirty * PAGE_SIZE > pressure_keep(used * PAGE_SIZE))
        pressure_arm();
}

/* Of the first superslabs with free dirty pages that neither this round nor a later one has seen,
 * the one with the most; when there is none, one that is wholly free. Lock held. */
static struct superslab *next_to_purge(uint64_t round)
{
    enum { CANDIDATES = 64 };
    struct superslab *best = NULL;
    struct list_node *node = heap.by_dirt.first;
    for (int left = CANDIDATES; node && (left > 0 || !best); left--, node = node->next) {
        struct superslab *superslab = CONTAINER_OF(node, struct superslab, by_dirt);
        if (superslab->purge_round < round &&
            (!best || superslab->dirty_free_pages > best->dirty_free_pages))
            best = superslab;
    }
    node = heap.by_unit[SUPERSLAB_GROUPS - 1][SUPERSLAB_UNITS].first;
    if (!best && node)
        best = CONTAINER_OF(node, struct superslab, by_unit);
    if (!best || best->purge_round >= round)
        return NULL;
    best->purge_round = round;
    return best;
}

bool page_heap_purge_pages(struct superslab *superslab, void *address, size_t size)
{
    /* Or the system would make huge pages of what is left, and fill in what was purged. */
    if (__atomic_exchange_n(&superslab->huge, false, __ATOMIC_RELAXED))
        os_advise_huge_pages(superslab->region.base, REGION_SIZE, false);
    return os_purge(address, size);
}

/* Purges the whole pages of the system inside a run; returns which pages these were. */
static struct run purge_pages(struct superslab *superslab, struct run run)
{
    uintptr_t start = (uintptr_t)superslab_address(superslab, run.first);
    uintptr_t first = round_up(start, os_page_size());
    uintptr_t end = round_down(start + run.pages * PAGE_SIZE, os_page_size());
    if (first >= end || !page_heap_purge_pages(superslab, (void *)first, end - first))
        return (struct run){run.first, 0};
    return (struct run){superslab_page_of((void *)first), (unsigned)((end - first) >> PAGE_SHIFT)};
}

/* Purges the free dirty runs of one superslab, up to `bytes`; returns bytes purged. Called and
 * returns with the lock held, releases it in between: then a run of the superslab is taken, so
 * that it cannot be unmapped by somebody else. */
static size_t purge_superslab(struct superslab *superslab, size_t bytes)
{
    size_t purged = 0;
    struct run run;
    for (unsigned page = 0; purged < bytes && superslab_next_dirty(superslab, page, &run);) {
        page = run.first + run.pages;
        take_run(superslab, run);
        lock_release(&heap.lock);
        struct run clean = purge_pages(superslab, run);
        lock_acquire(&heap.lock);
        if (clean.pages)
            bitmap_clear_range(superslab->dirty, clean.first, clean.pages);
        put_run(superslab, run, 0);
        purged += clean.pages * PAGE_SIZE;
    }
    return purged;
}

/* Unmaps a wholly free superslab. Called and returns with the lock held. */
static size_t unmap_superslab(struct superslab *superslab)
{
    size_t dirty = superslab->dirty_free_pages * PAGE_SIZE;
    extract(superslab);
    lock_release(&heap.lock);
    page_map_unregister(&superslab->region);
    bool unmapped = os_unmap(superslab->region.base, REGION_SIZE);
    if (unmapped)
        metadata_free(superslab, sizeof *superslab);
    lock_acquire(&heap.lock);
    if (unmapped)
        return dirty;
    /* The system could not split a mapping: keep the superslab. */
    poison(superslab->region.base, REGION_SIZE);
    page_map_register(&superslab->region);
    insert(superslab);
    heap.stats.dirty_free_pages += superslab->dirty_free_pages;
    relink(superslab);
    return 0;
}

size_t page_heap_purge(size_t bytes)
{
    size_t purged = 0;
    lock_acquire(&heap.lock);
    uint64_t round = ++heap.purge_round;
    while (purged < bytes) {
        struct superslab *superslab = next_to_purge(round);
        if (!superslab)
            break;
        if (superslab->free_pages == SUPERSLAB_PAGES && heap.stats.superslabs > 1)
            purged += unmap_superslab(superslab);
        else
            purged += purge_superslab(superslab, bytes - purged);
    }
    lock_release(&heap.lock);
    return purged;
}

size_t page_heap_unused_pages(enum idle_watcher watcher)
{
    lock_acquire(&heap.lock);
    size_t unused = idle_ask(&heap.unused, watcher, heap.stats.dirty_free_pages);
    lock_release(&heap.lock);
    return unused;
}

struct page_heap_stats page_heap_stats(void)
{
    lock_acquire(&heap.lock);
    struct page_heap_stats stats = heap.stats;
    lock_release(&heap.lock);
    return stats;
}

struct lock *page_heap_lock(void)
{
    return &heap.lock;
}

static void relist(struct superslab *superslab)
{
    superslab->by_run.link = superslab->by_unit.link = superslab->by_dirt.link = NULL;
    superslab_repair(superslab);
    insert(superslab);
    if (superslab->dirty_free_pages)
        list_push(&heap.by_dirt, &superslab->by_dirt);
    heap.stats.used_pages += SUPERSLAB_PAGES - superslab->free_pages;
    heap.stats.dirty_free_pages += superslab->dirty_free_pages;
}

void page_heap_repair(void)
{
    memset(heap.by_run, 0, sizeof heap.by_run);
    memset(heap.by_unit, 0, sizeof heap.by_unit);
    memset(heap.runs, 0, sizeof heap.runs);
    memset(heap.units, 0, sizeof heap.units);
    memset(&heap.stats, 0, sizeof heap.stats);
    heap.by_dirt.first = NULL;
    for (struct region *region = NULL; (region = page_map_next(region)) != NULL;) {
        struct superslab *superslab = (struct superslab *)region;
        if (region->kind == REGION_SUPERSLAB && superslab->listed)
            relist(superslab);
    }
    idle_lower(&heap.unused, heap.stats.dirty_free_pages);
}

void page_heap_check(void)
{
    lock_acquire(&heap.lock);
    size_t superslabs = 0, used = 0, dirty = 0;
    for (unsigned run = 0; run <= SUPERSLAB_PAGES; run++) {
        for (struct list_node *node = heap.by_run[run].first; node; node = node->next) {
            struct superslab *superslab = CONTAINER_OF(node, struct superslab, by_run);
            superslab_check(superslab);
            ASSERT(superslab->longest_run == run && superslab->listed_run == run);
            ASSERT(superslab->listed_units == bits_count(superslab->free_units));
            ASSERT(superslab->listed_group == superslab_group(superslab));
            ASSERT(page_map_lookup(superslab->region.base) == &superslab->region);
            superslabs++;
            used += SUPERSLAB_PAGES - superslab->free_pages;
            dirty += superslab->dirty_free_pages;
        }
    }
    ASSERT(superslabs == heap.stats.superslabs);
    ASSERT(used == heap.stats.used_pages);
    ASSERT(dirty == heap.stats.dirty_free_pages);
    lock_release(&heap.lock);
}
