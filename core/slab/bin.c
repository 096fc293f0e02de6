/* See bin.h. */
#include "slab/bin.h"

#include <string.h>

#include "base/assert.h"
#include "os/fatal.h"
#include "os/os.h"
#include "slab/shard.h"
#include "span/page_heap.h"

static bool sweeps_go_on; /* atomic, any thread: in some bin */

/* Which list a slab with free blocks belongs to, by quarters. */
static unsigned fullness_of(const struct slab *slab)
{
    unsigned quarters = slab->free_blocks * 4u;
    return (quarters > slab->blocks) + (quarters > slab->blocks * 2u) +
           (quarters > slab->blocks * 3u);
}

/* Puts the slab on the list that its number of free blocks asks for. Lock held. */
static void relist(struct bin *bin, struct slab *slab)
{
    bool listed = list_contains(&slab->by_fullness);
    unsigned fullness = fullness_of(slab);
    if (listed && slab->free_blocks && slab->fullness == fullness)
        return;
    if (listed)
        list_remove(&slab->by_fullness);
    slab->fullness = (uint8_t)fullness;
    if (slab->free_blocks)
        list_push(&bin->slabs[fullness], &slab->by_fullness);
}

/* The fullest slab with free blocks, or, unless `fresh`, with such as lie below the watermark: few
 * of a bin's slabs have others only. Lock held. */
static struct slab *fullest(struct bin *bin, bool fresh)
{
    for (unsigned i = 0; i <= FULLNESS_LEVELS; i++) {
        struct list_node *node = (i < FULLNESS_LEVELS ? &bin->slabs[i] : &bin->swept)->first;
        for (; node; node = node->next) {
            struct slab *slab = CONTAINER_OF(node, struct slab, by_fullness);
            if (fresh || slab_used_blocks(slab))
                return slab;
        }
    }
    return NULL;
}

static void lower(uint32_t *value, uint32_t bound)
{
    if (*value > bound)
        *value = bound;
}

bool bin_may_borrow(unsigned shard, unsigned class)
{
    enum { LOANS_MAX = 8 };
    struct bin *bin = bin_of(shard, class);
    uint8_t loans = ATOMIC_LOAD_RELAXED(&bin->loans);
    if (ATOMIC_LOAD_RELAXED(&bin->slab_count) || loans >= LOANS_MAX)
        return false;
    /* A race costs a loan too many. */
    ATOMIC_STORE_RELAXED(&bin->loans, (uint8_t)(loans + 1));
    return true;
}

/* Gives the first pages of a fresh slab memory in one call, instead of by a page fault each: the
 * more, the more slabs the bin has. Of long blocks a program may use a part only. Where the system
 * refuses, it may have given some of them. */
static void populate(struct slab *slab, size_t slabs)
{
    if (!slab->clean || !slabs || size_class_is_long(slab->size_class))
        return;
    size_t bytes = size_min(slabs, UNIT_PAGES) * PAGE_SIZE;
    slab->watermark =
        (uint16_t)size_min(size_class_index(slab->size_class, bytes - 1) + 1, slab->blocks);
    os_populate(slab->base, bytes);
}

/* Makes a slab the bin's. */
static void join(struct bin *bin, struct slab *slab)
{
    lock_acquire(&bin->lock);
    ATOMIC_STORE_RELAXED(&bin->slab_count, bin->slab_count + 1);
    slab->joined = true;
    bin->free_blocks += slab->free_blocks;
    relist(bin, slab);
    lock_release(&bin->lock);
}

unsigned bin_refill(unsigned shard, unsigned class, void **blocks, unsigned count, enum refill cost)
{
    bool fresh = cost != REFILL_USED;
    struct bin *bin = bin_of(shard, class);
    struct slab *slab;
    unsigned taken = 0;
    lock_acquire(&bin->lock);
    while (taken < count && (slab = fullest(bin, fresh)) != NULL) {
        unsigned most =
            fresh ? count - taken : (unsigned)size_min(count - taken, slab_used_blocks(slab));
        taken += slab_take(slab, blocks + taken, most);
        relist(bin, slab);
    }
    bin->free_blocks -= taken;
    lower(&bin->free_swept, bin->free_blocks);
    lower(&bin->free_unused, bin->free_blocks);
    lock_release(&bin->lock);
    if (taken || !fresh)
        return taken;
    slab = slab_create(class, shard, 1, cost == REFILL_MAP);
    if (!slab)
        return 0;
    populate(slab, ATOMIC_LOAD_RELAXED(&bin->slab_count));
    taken = slab_take(slab, blocks, count);
    join(bin, slab);
    return taken;
}

void *bin_take_aligned(unsigned shard, unsigned class, unsigned alignment, bool may_grow)
{
    void *block;
    struct slab *slab = slab_create(class, shard, alignment, may_grow);
    if (!slab)
        return NULL;
    slab_take(slab, &block, 1);
    join(bin_of(shard, class), slab);
    return block;
}

static void count_slab(struct bin *bin, uint32_t change)
{
    lock_acquire(&bin->lock);
    ATOMIC_STORE_RELAXED(&bin->slab_count, bin->slab_count + change);
    lock_release(&bin->lock);
}

bool bin_resize(struct slab *slab, unsigned class)
{
    unsigned before = slab->size_class;
    if (!slab_resize(slab, class))
        return false;
    count_slab(bin_of(slab->shard, before), -(uint32_t)1);
    count_slab(bin_of(slab->shard, class), 1);
    return true;
}

/* Slab of a block that a caller freed as one of `class`. The magazine it lay in says that
 * the class map knew such a slab; when that has gone since, all its blocks were free. */
static struct slab *slab_of(const void *block, unsigned class)
{
    struct slab *slab = slab_lookup(block);
    if (UNLIKELY(!slab || slab->size_class != class))
        fatal_pointer("free", DEFECT_DOUBLE_FREE, block, NULL, 0);
    return slab;
}

/* Takes a slab that became empty away from the bin and pushes it on `*empty`. Lock held. */
static void detach(struct bin *bin, struct slab *slab, struct list *empty)
{
    if (list_contains(&slab->by_fullness))
        list_remove(&slab->by_fullness);
    slab->joined = false;
    ATOMIC_STORE_RELAXED(&bin->slab_count, bin->slab_count - 1);
    bin->free_blocks -= slab->blocks;
    lower(&bin->free_swept, bin->free_blocks);
    lower(&bin->free_unused, bin->free_blocks);
    list_push(empty, &slab->by_fullness);
}

static void destroy_all(struct list *empty)
{
    while (empty->first) {
        struct slab *slab = CONTAINER_OF(empty->first, struct slab, by_fullness);
        list_remove(&slab->by_fullness);
        slab_destroy(slab);
    }
}

/* Grains of the slab (slab_grain) that have memory, no block of theirs in use, and were not purged
 * yet: a bit a grain. Lock held. */
static SLOW_PATH uint64_t purgeable_grains(const struct slab *slab)
{
    size_t size = size_classes[slab->size_class].size, grain = slab_grain(slab);
    uint64_t grains = 0;
    for (unsigned i = 0; (i + 1) * grain <= slab->watermark * size; i++) {
        unsigned first = size_class_index(slab->size_class, i * grain);
        unsigned last = size_class_index(slab->size_class, (i + 1) * grain - 1);
        if (bitmap_find(slab->free, first, last + 1, false) == last + 1)
            grains |= (uint64_t)1 << i;
    }
    return grains & ~slab->purged;
}

/* Takes or returns all blocks that touch the bytes, so that nobody gets one of them meanwhile; one
 * that is free when it comes back has been freed a second time. Lock held. */
static SLOW_PATH void set_blocks_of(struct slab *slab, size_t start, size_t length, bool free)
{
    unsigned first = size_class_index(slab->size_class, start);
    unsigned last = size_class_index(slab->size_class, start + length - 1);
    for (unsigned i = first; i <= last; i++) {
        if (UNLIKELY(bitmap_test(slab->free, i) == free))
            fatal_pointer(
                "free", DEFECT_DOUBLE_FREE,
                slab->base + i * (size_t)size_classes[slab->size_class].size, NULL, 0);
        (free ? bitmap_set : bitmap_clear)(slab->free, i);
    }
    unsigned count = last - first + 1;
    slab->free_blocks = (uint16_t)(free ? slab->free_blocks + count : slab->free_blocks - count);
    if (free && first / 64 < slab->first_word)
        slab->first_word = (uint16_t)(first / 64);
}

/* Purges the first run of purgeable grains of the slab. Called and returns with the bin's lock
 * held, releases it in between. Sets `*bytes` to what was purged, 0 when the system refuses; false
 * when there is no such run. */
static SLOW_PATH bool purge_slab_run(struct bin *bin, struct slab *slab, size_t *bytes)
{
    uint64_t grains = purgeable_grains(slab);
    if (!grains)
        return false;
    unsigned first = bits_lowest(grains);
    uint64_t rest = ~(grains >> first);
    unsigned count = rest ? bits_lowest(rest) : 64 - first;
    size_t grain = slab_grain(slab), start = first * grain, length = count * grain;
    ATOMIC_STORE_RELAXED(&slab->purged_once, true);
    set_blocks_of(slab, start, length, false);
    relist(bin, slab);
    lock_release(&bin->lock);
    bool purged = page_heap_purge_pages(slab->superslab, slab->base + start, length);
    lock_acquire(&bin->lock);
    set_blocks_of(slab, start, length, true);
    if (purged)
        slab->purged |= bitmap_word_mask(0, first, count);
    relist(bin, slab);
    *bytes = purged ? length : 0;
    return true;
}

/* A step of a sweep looks at so many slabs at a time, and only at those that are at
 * least half empty: in others few pages are free as a whole. */
enum { SWEEP_SLABS = 64, SWEEP_FULLNESS_MIN = FULLNESS_LEVELS / 2 };

/* A slab has no more runs of pages than this; more can only come while others use it. */
enum { RUNS_MAX = 32 };

/* Less idle memory than this is not worth a sweep. */
static const size_t idle_bytes_min = 64 * KIB;

static void end_sweep(struct bin *bin)
{
    while (bin->swept.first) {
        struct slab *slab = CONTAINER_OF(bin->swept.first, struct slab, by_fullness);
        ASSERT(list_contains(&slab->by_fullness) && slab->free_blocks);
        list_remove(&slab->by_fullness);
        relist(bin, slab);
    }
    ATOMIC_STORE_RELAXED(&bin->sweeping, false);
    bin->free_swept = bin->free_blocks;
}

/* The emptiest slab that the sweep has not looked at yet and is not fuller than that. */
static struct slab *next_to_sweep(struct bin *bin, unsigned fullness_min)
{
    for (unsigned i = FULLNESS_LEVELS; i-- > fullness_min;)
        if (bin->slabs[i].first)
            return CONTAINER_OF(bin->slabs[i].first, struct slab, by_fullness);
    return NULL;
}

/* Purges what can be purged in at most so many slabs of this level of fullness or emptier, until
 * the system refuses; returns bytes. A slab that was looked at waits on a list of its own until the
 * sweep ends; whoever takes or frees a block of it meanwhile may move it back. Lock held, but
 * released now and then; slabs that became empty are pushed on `*empty`. */
static SLOW_PATH size_t sweep(struct bin *bin, unsigned most, unsigned level, struct list *empty)
{
    size_t total = 0, bytes = 1;
    struct slab *slab;
    while ((slab = next_to_sweep(bin, level)) != NULL && bytes && most-- > 0) {
        for (int runs = 0; runs < RUNS_MAX && bytes && purge_slab_run(bin, slab, &bytes); runs++)
            total += bytes;
        if (slab->free_blocks == slab->blocks) {
            detach(bin, slab, empty);
        } else if (list_contains(&slab->by_fullness)) {
            list_remove(&slab->by_fullness);
            list_push(&bin->swept, &slab->by_fullness);
        }
    }
    /* Somebody else may have ended it while the lock was open. */
    if (!slab || !bytes || !bin->sweeping)
        end_sweep(bin);
    return total;
}

/* Much more is free than after the last sweep. Lock held. */
static bool has_excess(const struct bin *bin, unsigned size_class)
{
    const struct size_class *layout = &size_classes[size_class];
    size_t used = (size_t)bin->slab_count * layout->blocks - bin->free_blocks;
    size_t fresh = bin->free_blocks - bin->free_swept;
    return fresh * layout->size > pressure_keep(used * layout->size);
}

/* Returns those of the blocks to their slabs that belong to the bin of `shard`, and moves the
 * others to the front of `blocks`; returns how many these are. Aborts because of the first that its
 * slab refuses. */
static unsigned flush_to_shard(unsigned shard, unsigned class, void **blocks, unsigned count)
{
    struct bin *bin = bin_of(shard, class);
    struct list empty = {NULL};
    unsigned left = 0, put;
    const void *refused = NULL;
    struct slab *slab = NULL;
    lock_acquire(&bin->lock);
    for (unsigned i = 0; i < count; i += put) {
        slab = slab_lookup(blocks[i]);
        if (UNLIKELY(!slab || slab->shard != shard || slab->size_class != class)) {
            blocks[left++] = blocks[i];
            put = 1;
            continue;
        }
        put = slab_put(slab, blocks + i, count - i);
        if (UNLIKELY(!put)) {
            refused = blocks[i];
            break;
        }
        bin->free_blocks += put;
        if (slab->free_blocks == slab->blocks)
            detach(bin, slab, &empty);
        else
            relist(bin, slab);
    }
    bool excess = has_excess(bin, class);
    lock_release(&bin->lock);
    if (UNLIKELY(refused != NULL))
        slab_refuse(slab, refused, "free");
    destroy_all(&empty);
    if (excess)
        pressure_arm();
    return left;
}

void bin_flush(unsigned shard, unsigned class, void **blocks, unsigned count)
{
    while (count) {
        unsigned owner = slab_of(blocks[0], class)->shard;
        unsigned left = flush_to_shard(owner, class, blocks, count);
        if (owner != shard)
            ATOMIC_ADD_RELAXED(&bin_of(owner, class)->remote_blocks, count - left);
        count = left;
    }
}

bool bin_block_is_free(const void *block, const char *call)
{
    struct slab *slab = slab_lookup(block);
    if (!slab)
        return false;
    unsigned index = slab_index(slab, block, call);
    struct bin *bin = bin_of(slab->shard, slab->size_class);
    lock_acquire(&bin->lock);
    bool free = bitmap_test(slab->free, index);
    lock_release(&bin->lock);
    return free;
}

/* The number of a bin, in the order of shards and classes. */
static struct bin *bin_at(unsigned number)
{
    return bin_of(number / CLASS_COUNT, number % CLASS_COUNT);
}

/* Goes on to the next bin that has slabs, from the number on; false when there is none. */
static bool find_bin(unsigned *number)
{
    for (; *number < shard_count() * CLASS_COUNT; ++*number)
        if (ATOMIC_LOAD_RELAXED(&bin_at(*number)->slab_count))
            return true;
    return false;
}

static size_t purge_bin(struct bin *bin)
{
    struct list empty = {NULL};
    lock_acquire(&bin->lock);
    size_t total = sweep(bin, bin->slab_count, 0, &empty);
    end_sweep(bin);
    lock_release(&bin->lock);
    destroy_all(&empty);
    return total;
}

static SLOW_PATH void tick_bin(struct bin *bin, unsigned size_class, enum pressure_tick tick)
{
    lock_acquire(&bin->lock);
    size_t unused = bin->free_unused - size_min(bin->free_unused, bin->free_swept);
    bool idle =
        unused * size_classes[size_class].size > size_max(idle_bytes_min, pressure_kept_bytes());
    bool excess = has_excess(bin, size_class);
    if (tick == PRESSURE_TICK_GROWTH ? excess : idle) {
        ATOMIC_STORE_RELAXED(&bin->sweeping, true);
        ATOMIC_STORE_RELEASE(&sweeps_go_on, true);
    }
    if (tick == PRESSURE_TICK_IDLE)
        bin->free_unused = bin->free_blocks;
    lock_release(&bin->lock);
    if (excess)
        pressure_arm();
}

/* Goes on with the bin's sweep, if there is one. */
static bool step_bin(struct bin *bin)
{
    struct list empty = {NULL};
    if (!ATOMIC_LOAD_RELAXED(&bin->sweeping))
        return false;
    lock_acquire(&bin->lock);
    if (bin->sweeping)
        pressure_account(sweep(bin, SWEEP_SLABS, SWEEP_FULLNESS_MIN, &empty));
    lock_release(&bin->lock);
    destroy_all(&empty);
    return true;
}

size_t bin_purge_all(void)
{
    size_t total = 0;
    for (unsigned number = 0; find_bin(&number); number++)
        total += purge_bin(bin_at(number));
    return total;
}

void bin_tick(enum pressure_tick tick)
{
    for (unsigned number = 0; find_bin(&number); number++)
        tick_bin(bin_at(number), number % CLASS_COUNT, tick);
}

bool bin_sweep_step(void)
{
    if (LIKELY(!ATOMIC_LOAD_RELAXED(&sweeps_go_on)))
        return false;
    /* Before the look, so that a sweep that begins meanwhile is not forgotten. Acquire pairs with
     * release in tick_bin. */
    if (!__atomic_exchange_n(&sweeps_go_on, false, __ATOMIC_ACQ_REL))
        return false;
    for (unsigned number = 0; find_bin(&number); number++) {
        if (step_bin(bin_at(number))) {
            ATOMIC_STORE_RELAXED(&sweeps_go_on, true);
            return true;
        }
    }
    return false;
}

/* The bin's slabs in the superslab. */
static void collect(struct bin *bin, unsigned shard, unsigned class, struct superslab *superslab)
{
    for (unsigned unit = 0; unit < SUPERSLAB_UNITS; unit++) {
        struct slab *slab = ATOMIC_LOAD_ACQUIRE(&superslab->slab_of_unit[unit]);
        if (!slab || slab->size_class != class || slab->shard != shard || !slab->joined ||
            slab->base != superslab_address(superslab, unit))
            continue;
        slab_repair(slab);
        slab->by_fullness.link = NULL;
        relist(bin, slab);
        ATOMIC_STORE_RELAXED(&bin->slab_count, bin->slab_count + 1);
        bin->free_blocks += slab->free_blocks;
    }
}

void bin_repair(unsigned shard, unsigned class)
{
    struct bin *bin = bin_of(shard, class);
    memset(bin->slabs, 0, sizeof bin->slabs);
    bin->swept.first = NULL;
    ATOMIC_STORE_RELAXED(&bin->sweeping, false);
    ATOMIC_STORE_RELAXED(&bin->slab_count, 0);
    bin->free_blocks = 0;
    for (struct region *region = NULL; (region = page_map_next(region)) != NULL;)
        if (region->kind == REGION_SUPERSLAB)
            collect(bin, shard, class, (struct superslab *)region);
    bin->free_swept = bin->free_unused = bin->free_blocks;
}

void bin_check_all(void)
{
    for (unsigned shard = 0; shard < shard_count(); shard++) {
        for (unsigned class = 1; class < CLASS_COUNT; class ++) {
            struct bin *bin = bin_of(shard, class);
            uint32_t free_blocks = 0;
            lock_acquire(&bin->lock);
            for (unsigned level = 0; level < FULLNESS_LEVELS; level++) {
                struct list_node *node = bin->slabs[level].first;
                for (; node; node = node->next) {
                    struct slab *slab = CONTAINER_OF(node, struct slab, by_fullness);
                    slab_check(slab);
                    ASSERT(slab->size_class == class && slab->shard == shard);
                    ASSERT(slab->fullness == level && fullness_of(slab) == level);
                    ASSERT(slab->free_blocks > 0 && slab->joined);
                    free_blocks += slab->free_blocks;
                }
            }
            ASSERT(bin->swept.first || free_blocks == bin->free_blocks);
            (void)free_blocks; /* only asserted on */
            lock_release(&bin->lock);
        }
    }
}
