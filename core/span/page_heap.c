/* See page_heap.h. */
#include "span/page_heap.h"

#include <string.h>

#include "base/assert.h"
#include "base/poison.h"
#include "base/pressure.h"
#include "map/metadata.h"
#include "os/os.h"

/* Lists by two measures: the first index is one, the second the number of free units. */
struct index {
    struct list lists[SUPERSLAB_UNITS + 1][SUPERSLAB_UNITS + 1];
    uint64_t filled[SUPERSLAB_UNITS + 1]; /* bit per list of a row that is not empty */
};

static struct {
    struct lock lock CACHE_ALIGNED;
    struct index by_run;          /* lock: by the longest run of free units */
    struct index by_group;        /* lock: by the largest group of free units */
    struct list by_dirt;          /* lock: with free dirty pages */
    struct page_heap_stats stats; /* lock */
    char *hint;                   /* lock: where the next superslab should be */
    struct idle unused;           /* lock: of free dirty pages */
    uint64_t purge_round;         /* lock */
} heap;

/* Lock held. */
static void link_to(struct index *index, unsigned row, unsigned units, struct list_node *node)
{
    list_push(&index->lists[row][units], node);
    bitmap_set(&index->filled[row], units);
}

/* Lock held. */
static void unlink_from(struct index *index, unsigned row, unsigned units, struct list_node *node)
{
    list_remove(node);
    if (!index->lists[row][units].first)
        bitmap_clear(&index->filled[row], units);
}

/* Lock held. */
static void link_by_units(struct superslab *superslab)
{
    unsigned units = bits_count(superslab->free_units);
    superslab->listed_units = (uint8_t)units;
    superslab->listed_run = (uint8_t)superslab_longest_run(superslab);
    superslab->listed_group = (uint8_t)superslab_group(superslab);
    link_to(&heap.by_run, superslab->listed_run, units, &superslab->by_run);
    link_to(&heap.by_group, superslab->listed_group, units, &superslab->by_group);
}

/* Lock held. */
static void unlink_by_units(struct superslab *superslab)
{
    unsigned units = superslab->listed_units;
    unlink_from(&heap.by_run, superslab->listed_run, units, &superslab->by_run);
    unlink_from(&heap.by_group, superslab->listed_group, units, &superslab->by_group);
}

/* Puts the superslab on the lists that its state asks for. Lock held. */
static void relink(struct superslab *superslab)
{
    unlink_by_units(superslab);
    link_by_units(superslab);
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
    heap.stats.used_pages += (size_t)run.units * UNIT_PAGES;
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
    heap.stats.used_pages -= (size_t)run.units * UNIT_PAGES;
    heap.stats.dirty_free_pages += superslab->dirty_free_pages - dirty_before;
    relink(superslab);
}

/* Lock held. */
static void insert(struct superslab *superslab)
{
    superslab->listed = true;
    link_by_units(superslab);
    heap.stats.superslabs++;
    heap.hint = superslab->region.base - REGION_SIZE;
}

/* Lock held. The superslab is wholly free. */
static void extract(struct superslab *superslab)
{
    superslab->listed = false;
    unlink_by_units(superslab);
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

/* The fullest superslab of the rows from `row` on, or NULL. Lock held. */
static struct list_node *fullest(const struct index *index, unsigned row)
{
    struct list_node *best = NULL;
    unsigned fewest = UINT32_MAX;
    for (; row <= SUPERSLAB_UNITS; row++) {
        unsigned units = index->filled[row] ? bits_lowest(index->filled[row]) : UINT32_MAX;
        if (units < fewest) {
            fewest = units;
            best = index->lists[row][units].first;
        }
    }
    return best;
}

/* The row of by_group for groups of so many units, or a few more. */
static unsigned row_of_group(unsigned units)
{
    unsigned row = 1;
    while (units > 1u << (row - 1))
        row++;
    return row;
}

/* Where alignment is asked for, groups tell without a search who has room; what else might have is
 * not looked for. Lock held. */
static struct superslab *find(unsigned units, unsigned alignment, struct run *run)
{
    unsigned group = (unsigned)size_max(units, alignment);
    struct list_node *node = alignment == 1 ? fullest(&heap.by_run, units)
                                            : fullest(&heap.by_group, row_of_group(group));
    if (!node)
        return NULL;
    struct superslab *superslab = alignment == 1 ? CONTAINER_OF(node, struct superslab, by_run)
                                                 : CONTAINER_OF(node, struct superslab, by_group);
    return superslab_find(superslab, units, alignment, run) ? superslab : NULL;
}

bool page_heap_take(unsigned units, unsigned alignment, enum growth growth, struct unit_run *taken)
{
    struct superslab *fresh = NULL;
    do {
        struct run run;
        lock_acquire(&heap.lock);
        /* Not before, or a purge could unmap it again. */
        if (fresh)
            insert(fresh);
        struct superslab *superslab = find(units, alignment, &run);
        bool clean = superslab && take_run(superslab, run) == 0;
        lock_release(&heap.lock);
        if (superslab) {
            *taken = (struct unit_run){superslab, run, clean};
            unpoison(superslab_address(superslab, run.first), run.units * UNIT_SIZE);
            return true;
        }
        if (growth == GROWTH_NONE)
            return false;
        reclaim_before_growth(REGION_SIZE, false);
    } while ((fresh = grow(growth)) != NULL);
    return false;
}

bool page_heap_init(void)
{
    struct unit_run first;
    if (class_map.limit)
        return true;
    if (!page_heap_take(1, 1, GROWTH_SMALL_PAGES, &first))
        return false;
    page_heap_put(first.superslab, first.run, 0);
    return true;
}

bool page_heap_take_at(struct superslab *superslab, struct run run)
{
    if (run.first + run.units > SUPERSLAB_UNITS)
        return false;
    uint32_t units = (uint32_t)bitmap_word_mask(0, run.first, run.units);
    lock_acquire(&heap.lock);
    bool free = (superslab->free_units & units) == units;
    if (free)
        take_run(superslab, run);
    lock_release(&heap.lock);
    if (free)
        unpoison(superslab_address(superslab, run.first), run.units * UNIT_SIZE);
    return free;
}

void page_heap_put(struct superslab *superslab, struct run run, unsigned dirty_pages)
{
    poison(superslab_address(superslab, run.first), run.units * UNIT_SIZE);
    lock_acquire(&heap.lock);
    put_run(superslab, run, dirty_pages);
    size_t dirty = heap.stats.dirty_free_pages, used = heap.stats.used_pages;
    lock_release(&heap.lock);
    if (dirty * PAGE_SIZE > pressure_keep(used * PAGE_SIZE))
        pressure_arm();
}

/* The system refuses to purge memory that is locked: a purge gives up after so many superslabs, and
 * these are left alone for so many rounds, or each purge would look at all of them again. A request
 * for everything asks for all once more: what was refused may be granted now. */
enum { REFUSALS_MAX = 8, REFUSED_ROUNDS = 64 };

/* Of the first superslabs with free dirty pages that neither this round nor a later one has seen,
 * the one with the most, or NULL. Lock held. */
static struct superslab *dirtiest(uint64_t round)
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
    return best;
}

/* One that is wholly free and that neither this round nor a later one has seen, or NULL. Lock held.
 */
static struct superslab *wholly_free(uint64_t round)
{
    struct list_node *node = heap.by_run.lists[SUPERSLAB_UNITS][SUPERSLAB_UNITS].first;
    struct superslab *superslab = LIST_ENTRY(node, struct superslab, by_run);
    return superslab && superslab->purge_round < round ? superslab : NULL;
}

bool page_heap_purge_pages(struct superslab *superslab, void *address, size_t size)
{
    /* Else the system would make huge pages of it again, and so fill what is purged. */
    if (__atomic_exchange_n(&superslab->huge, false, __ATOMIC_RELAXED))
        os_advise_huge_pages(superslab->region.base, REGION_SIZE, false);
    return os_purge(address, size);
}

_Static_assert(UNIT_SIZE == 64 * KIB, "a unit is whole pages of any system");

/* Purges the free dirty pages of one superslab, up to `bytes`; returns bytes purged. Called and
 * returns with the lock held, releases it in between: then a run of the superslab is taken, so
 * that it cannot be unmapped by somebody else. */
static size_t purge_superslab(struct superslab *superslab, size_t bytes)
{
    size_t purged = 0;
    struct run run;
    for (unsigned unit = 0; purged < bytes && superslab_next_dirty(superslab, unit, &run);) {
        unit = run.first + run.units;
        unsigned dirty = take_run(superslab, run);
        lock_release(&heap.lock);
        char *start = superslab_address(superslab, run.first);
        bool clean = page_heap_purge_pages(superslab, start, run.units * UNIT_SIZE);
        lock_acquire(&heap.lock);
        if (clean)
            superslab_clean(superslab, run);
        put_run(superslab, run, 0);
        purged += clean ? dirty * PAGE_SIZE : 0;
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
    unsigned refusals = 0;
    bool everything = bytes == SIZE_MAX;
    lock_acquire(&heap.lock);
    uint64_t round = heap.purge_round += everything ? REFUSED_ROUNDS + 1 : 1;
    while (purged < bytes) {
        bool asks = everything || refusals < REFUSALS_MAX;
        struct superslab *superslab = asks ? dirtiest(round) : NULL;
        if (!superslab)
            superslab = wholly_free(round);
        if (!superslab)
            break;
        superslab->purge_round = round;
        if (superslab->free_units == UINT32_MAX && heap.stats.superslabs > 1) {
            purged += unmap_superslab(superslab);
            continue;
        }
        size_t clean = purge_superslab(superslab, bytes - purged);
        purged += clean;
        if (!clean && superslab->dirty_free_pages) {
            superslab->purge_round = round + REFUSED_ROUNDS;
            refusals++;
        }
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

static size_t used_pages(const struct superslab *superslab)
{
    return bits_count((uint32_t)~superslab->free_units) * (size_t)UNIT_PAGES;
}

static void relist(struct superslab *superslab)
{
    superslab->by_run.link = superslab->by_group.link = superslab->by_dirt.link = NULL;
    superslab_repair(superslab);
    insert(superslab);
    if (superslab->dirty_free_pages)
        list_push(&heap.by_dirt, &superslab->by_dirt);
    heap.stats.used_pages += used_pages(superslab);
    heap.stats.dirty_free_pages += superslab->dirty_free_pages;
}

void page_heap_repair(void)
{
    memset(&heap.by_run, 0, sizeof heap.by_run);
    memset(&heap.by_group, 0, sizeof heap.by_group);
    memset(&heap.stats, 0, sizeof heap.stats);
    heap.by_dirt.first = NULL;
    for (struct region *region = NULL; (region = page_map_next(region)) != NULL;) {
        struct superslab *superslab = (struct superslab *)region;
        if (region->kind == REGION_SUPERSLAB && superslab->listed)
            relist(superslab);
    }
    idle_lower(&heap.unused, heap.stats.dirty_free_pages);
}

/* The superslab is on the lists where its state says. Lock held. */
static void check_superslab(const struct superslab *superslab, unsigned row, unsigned units)
{
    superslab_check(superslab);
    (void)row, (void)units; /* only asserted on */
    ASSERT(superslab->listed);
    ASSERT(superslab->listed_run == row && superslab_longest_run(superslab) == row);
    ASSERT(superslab->listed_units == units && bits_count(superslab->free_units) == units);
    ASSERT(superslab->listed_group == superslab_group(superslab));
    ASSERT(list_contains(&superslab->by_group));
    ASSERT(list_contains(&superslab->by_dirt) == (superslab->dirty_free_pages != 0));
    ASSERT(page_map_lookup(superslab->region.base) == &superslab->region);
}

static size_t list_length(const struct list *list)
{
    size_t length = 0;
    for (const struct list_node *node = list->first; node; node = node->next)
        length++;
    return length;
}

/* Nodes on the lists of the index, of which the bits know. Lock held. */
static size_t index_length(const struct index *index)
{
    size_t total = 0;
    for (unsigned row = 0; row <= SUPERSLAB_UNITS; row++) {
        for (unsigned units = 0; units <= SUPERSLAB_UNITS; units++) {
            size_t length = list_length(&index->lists[row][units]);
            ASSERT(bitmap_test(&index->filled[row], units) == (length != 0));
            total += length;
        }
    }
    return total;
}

void page_heap_check(void)
{
    lock_acquire(&heap.lock);
    size_t superslabs = 0, used = 0, dirty = 0, with_dirt = 0;
    for (unsigned row = 0; row <= SUPERSLAB_UNITS; row++) {
        for (unsigned units = 0; units <= SUPERSLAB_UNITS; units++) {
            struct list_node *node = heap.by_run.lists[row][units].first;
            for (; node; node = node->next) {
                struct superslab *superslab = CONTAINER_OF(node, struct superslab, by_run);
                check_superslab(superslab, row, units);
                superslabs++;
                used += used_pages(superslab);
                dirty += superslab->dirty_free_pages;
                with_dirt += superslab->dirty_free_pages != 0;
            }
        }
    }
    ASSERT(superslabs == heap.stats.superslabs);
    ASSERT(superslabs == index_length(&heap.by_run) && superslabs == index_length(&heap.by_group));
    ASSERT(with_dirt == list_length(&heap.by_dirt));
    ASSERT(used == heap.stats.used_pages);
    ASSERT(dirty == heap.stats.dirty_free_pages);
    for (unsigned i = 0; i < IDLE_WATCHERS; i++)
        ASSERT(heap.unused.least[i] <= dirty);
    lock_release(&heap.lock);
}
