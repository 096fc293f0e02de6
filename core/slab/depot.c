/* See depot.h. */
#include "slab/depot.h"

#include <string.h>

#include "base/assert.h"
#include "base/poison.h"
#include "base/policy.h"
#include "base/pressure.h"
#include "os/fatal.h"
#include "slab/bin.h"

/* Room for a long burst of small blocks; only what is used is ever touched. */
enum { DEPOT_SLOTS = 2048 };

/* A depot holds at most as much as so many of the longest magazines. */
enum { MAGAZINES_MAX = 16 };

static struct depot {
    struct lock lock CACHE_ALIGNED;
    uint32_t count;  /* written under lock, read by any thread */
    uint32_t unused; /* lock: least of `count` since the last tick */
    uint32_t excess; /* atomic relaxed, any thread: what the tick wants spilled */
} depots[CLASS_COUNT];

/* The slots of a depot, oldest first, lie in rows, so that those of many small depots share pages.
 */
enum { ROW_SLOTS = 64 };

static CACHE_ALIGNED void *rows[DEPOT_SLOTS / ROW_SLOTS][CLASS_COUNT][ROW_SLOTS]; /* its lock */

static bool closed; /* atomic relaxed, any thread */

static unsigned limit(unsigned class)
{
    if (ATOMIC_LOAD_RELAXED(&closed))
        return 0;
    size_t bytes = (size_t)POLICY(magazine_kib) * KIB * MAGAZINES_MAX;
    return (unsigned)size_min(bytes / size_classes[class].size, DEPOT_SLOTS);
}

/* Lock held. */
static void set_count(struct depot *depot, uint32_t count)
{
    ATOMIC_STORE_RELAXED(&depot->count, count);
    if (depot->unused > count)
        depot->unused = count;
}

static void **slot(unsigned class, unsigned index)
{
    return &rows[index / ROW_SLOTS][class][index % ROW_SLOTS];
}

/* Copies slots of the depot from `index` on, row by row. Lock held. */
static void copy_in(unsigned class, unsigned index, void *const *blocks, unsigned count)
{
    for (unsigned part; count; index += part, blocks += part, count -= part) {
        part = (unsigned)size_min(count, ROW_SLOTS - index % ROW_SLOTS);
        memcpy(slot(class, index), blocks, part * sizeof *blocks);
    }
}

static void copy_out(unsigned class, unsigned index, void **blocks, unsigned count)
{
    for (unsigned part; count; index += part, blocks += part, count -= part) {
        part = (unsigned)size_min(count, ROW_SLOTS - index % ROW_SLOTS);
        memcpy(blocks, slot(class, index), part * sizeof *blocks);
    }
}

/* The class map has sent the blocks here, so each lies in a slab of the class. */
static bool are_starts(unsigned class, void *const *blocks, unsigned count)
{
    bool good = true;
    for (unsigned i = 0; i < count; i++)
        good &= size_class_starts_at(class, blocks[i]);
    return good;
}

/* Says what is wrong with one of the blocks. */
static SLOW_PATH void fatal_starts(unsigned class, void *const *blocks, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const struct slab *slab = slab_lookup(blocks[i]);
        if (!slab || slab->class != class)
            fatal_pointer("free", DEFECT_DOUBLE_FREE, blocks[i], NULL, 0);
        slab_index(slab, blocks[i], "free");
    }
}

unsigned depot_put(unsigned class, void *const *blocks, unsigned count)
{
    struct depot *depot = &depots[class];
    unsigned most = limit(class);
    lock_acquire(&depot->lock);
    unsigned held = depot->count, room = most > held ? most - held : 0;
    if (count > room)
        count = room;
    bool good = are_starts(class, blocks, count);
    if (LIKELY(good)) {
        poison_blocks(blocks, count, size_classes[class].size);
        copy_in(class, held, blocks, count);
        KEEP_STORE_ORDER();
        set_count(depot, held + count);
    }
    lock_release(&depot->lock);
    if (UNLIKELY(!good))
        fatal_starts(class, blocks, count);
    if (held + count > most / 2)
        pressure_arm();
    return count;
}

unsigned depot_take(unsigned class, void **blocks, unsigned count)
{
    struct depot *depot = &depots[class];
    if (!depot_blocks(class))
        return 0;
    lock_acquire(&depot->lock);
    if (count > depot->count)
        count = depot->count;
    set_count(depot, depot->count - count);
    copy_out(class, depot->count, blocks, count);
    lock_release(&depot->lock);
    unpoison_blocks(blocks, count, size_classes[class].size);
    return count;
}

SLOW_PATH bool depot_holds(unsigned class, const void *block)
{
    struct depot *depot = &depots[class];
    bool found = false;
    lock_acquire(&depot->lock);
    for (unsigned i = 0; i < depot->count && !found; i++)
        found = *slot(class, i) == block;
    lock_release(&depot->lock);
    return found;
}

unsigned depot_blocks(unsigned class)
{
    return ATOMIC_LOAD_RELAXED(&depots[class].count);
}

/* Returns up to `count` blocks, those that came last, to the bins; true when there were any. */
static SLOW_PATH bool spill(unsigned class, unsigned count)
{
    void *blocks[FLUSH_MAX];
    count = depot_take(class, blocks, (unsigned)size_min(count, FLUSH_MAX));
    if (!count)
        return false;
    const struct slab *slab = slab_lookup(blocks[0]);
    bin_flush(slab ? slab->shard : 0, class, blocks, count);
    return true;
}

void depot_tick(void)
{
    for (unsigned class = 1; class < CLASS_COUNT; class ++) {
        struct depot *depot = &depots[class];
        if (!depot_blocks(class))
            continue;
        lock_acquire(&depot->lock);
        ATOMIC_STORE_RELAXED(&depot->excess, depot->unused);
        depot->unused = depot->count;
        bool much = depot->count > limit(class) / 2;
        lock_release(&depot->lock);
        if (much)
            pressure_arm();
    }
}

bool depot_step(void)
{
    for (unsigned class = 1; class < CLASS_COUNT; class ++) {
        struct depot *depot = &depots[class];
        uint32_t excess = ATOMIC_LOAD_RELAXED(&depot->excess);
        if (!excess)
            continue;
        /* A race with the step of another thread spills too much or too little. */
        ATOMIC_STORE_RELAXED(&depot->excess, excess - (uint32_t)size_min(excess, FLUSH_MAX));
        if (spill(class, excess))
            return true;
    }
    return false;
}

bool depot_spill(void)
{
    bool any = false;
    for (unsigned class = 1; class < CLASS_COUNT; class ++)
        for (unsigned left = depot_blocks(class); left > 0 && spill(class, FLUSH_MAX);
             left -= (unsigned)size_min(left, FLUSH_MAX))
            any = true;
    return any;
}

void depot_close(void)
{
    ATOMIC_STORE_RELAXED(&closed, true);
}

struct lock *depot_lock(unsigned class)
{
    return &depots[class].lock;
}

void depot_check_all(void)
{
    for (unsigned class = 1; class < CLASS_COUNT; class ++) {
        struct depot *depot = &depots[class];
        lock_acquire(&depot->lock);
        ASSERT(depot->count <= DEPOT_SLOTS && depot->unused <= depot->count);
        for (unsigned i = 0; i < depot->count; i++) {
            const struct slab *slab = slab_lookup(*slot(class, i));
            ASSERT(slab && slab->class == class);
        }
        lock_release(&depot->lock);
    }
}
