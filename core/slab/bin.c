/* See bin.h. */
#include "slab/bin.h"

#include <string.h>

#include "base/assert.h"
#include "os/fatal.h"
#include "os/os.h"
#include "span/page_heap.h"

static struct bin bins[SHARD_MAX][CLASS_COUNT];
static bool sweeps_go_on;          /* atomic, any thread: in some bin */
static unsigned shards_active = 1; /* atomic relaxed, any thread */
static unsigned shards_ever = 1;   /* atomic relaxed, any thread */
static unsigned shards_given;      /* atomic relaxed, any thread; written by one at a time */

void shard_init(unsigned count)
{
    count = count < 1 ? 1 : count > SHARD_MAX ? SHARD_MAX : count;
    if (count > shard_count())
        ATOMIC_STORE_RELAXED(&shards_ever, count);
    ATOMIC_STORE_RELAXED(&shards_active, count);
}

unsigned shard_of_heap(unsigned index)
{
    unsigned shard = index % shards_in_use();
    if (shard >= shards_with_heaps())
        ATOMIC_STORE_RELAXED(&shards_given, shard + 1);
    return shard;
}

unsigned shards_with_heaps(void)
{
    return ATOMIC_LOAD_RELAXED(&shards_given);
}

unsigned shards_in_use(void)
{
    return ATOMIC_LOAD_RELAXED(&shards_active);
}

unsigned shard_count(void)
{
    return ATOMIC_LOAD_RELAXED(&shards_ever);
}

struct bin *bin_of(unsigned shard, unsigned class)
{
    return &bins[shard][class];
}

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
    if (!slab->clean || !slabs || size_class_is_long(slab->class))
        return;
    size_t bytes = size_min(slabs, UNIT_PAGES) * PAGE_SIZE;
    slab->watermark =
        (uint16_t)size_min(size_class_index(slab->class, bytes - 1) + 1, slab->blocks);
    os_populate(slab->base, bytes);
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
    slab = slab_create(class, shard, cost == REFILL_MAP);
    if (!slab)
        return 0;
    populate(slab, ATOMIC_LOAD_RELAXED(&bin->slab_count));
    taken = slab_take(slab, blocks, count);
    lock_acquire(&bin->lock);
    ATOMIC_STORE_RELAXED(&bin->slab_count, bin->slab_count + 1);
    slab->joined = true;
    bin->free_blocks += slab->free_blocks;
    relist(bin, slab);
    lock_release(&bin->lock);
    return taken;
}

/* Slab of a block that a caller freed as one of `class`. The magazine it lay in says that
 * the class map knew such a slab; when that has gone since, all its blocks were free. */
static struct slab *slab_of(const void *block, unsigned class)
{
    struct slab *slab = slab_lookup(block);
    if (UNLIKELY(!slab || slab->class != class))
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

/* Pages of the slab that have memory, no block of theirs in use, and were not purged yet: a bit a
 * page. Lock held. */
static SLOW_PATH uint64_t purgeable_pages(const struct slab *slab)
{
    size_t size = size_classes[slab->class].size;
    size_t step = size_max(os_page_size(), PAGE_SIZE);
    uint64_t pages = 0;
    for (size_t start = 0; start + step <= slab->watermark * size; start += step) {
        unsigned first = size_class_index(slab->class, start);
        unsigned last = size_class_index(slab->class, start + step - 1);
        if (bitmap_find(slab->free, first, last + 1, false) == last + 1)
            pages |= bitmap_word_mask(
                0, (unsigned)(start >> PAGE_SHIFT), (unsigned)(step >> PAGE_SHIFT));
    }
    return pages & ~slab->purged;
}

/* Takes or returns all blocks that touch the pages, so that nobody gets one of them meanwhile; one
 * that is free when it comes back has been freed a second time. Lock held. */
static SLOW_PATH void set_blocks_of_pages(struct slab *slab, struct run pages, bool free)
{
    unsigned first = size_class_index(slab->class, pages.first * PAGE_SIZE);
    unsigned last = size_class_index(slab->class, (pages.first + pages.pages) * PAGE_SIZE - 1);
    for (unsigned i = first; i <= last; i++) {
        if (UNLIKELY(bitmap_test(slab->free, i) == free))
            fatal_pointer(
                "free", DEFECT_DOUBLE_FREE, slab->base + i * (size_t)size_classes[slab->class].size,
                NULL, 0);
        (free ? bitmap_set : bitmap_clear)(slab->free, i);
    }
    unsigned count = last - first + 1;
    slab->free_blocks = (uint16_t)(free ? slab->free_blocks + count : slab->free_blocks - count);
    if (free && first / 64 < slab->first_word)
        slab->first_word = (uint16_t)(first / 64);
}

/* Purges the first run of purgeable pages of the slab. Called and returns with the bin's lock held,
 * releases it in between. Sets `*bytes` to what was purged, 0 when the system refuses; false when
 * there is no such run. */
static SLOW_PATH bool purge_slab_run(struct bin *bin, struct slab *slab, size_t *bytes)
{
    uint64_t pages = purgeable_pages(slab);
    if (!pages)
        return false;
    unsigned first = bits_lowest(pages);
    uint64_t rest = ~(pages >> first);
    struct run run = {first, rest ? bits_lowest(rest) : 64 - first};
    ATOMIC_STORE_RELAXED(&slab->clean, false);
    set_blocks_of_pages(slab, run, false);
    relist(bin, slab);
    lock_release(&bin->lock);
    size_t length = run.pages * PAGE_SIZE;
    char *start = slab->base + run.first * PAGE_SIZE;
    bool purged = page_heap_purge_pages(slab->superslab, start, length);
    lock_acquire(&bin->lock);
    set_blocks_of_pages(slab, run, true);
    if (purged)
        slab->purged |= bitmap_word_mask(0, run.first, run.pages);
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

static unsigned class_of(const struct bin *bin)
{
    return (unsigned)((size_t)(bin - &bins[0][0]) % CLASS_COUNT);
}

/* Much more is free than after the last sweep. Lock held. */
static bool has_excess(const struct bin *bin)
{
    const struct size_class *class = &size_classes[class_of(bin)];
    size_t used = (size_t)bin->slab_count * class->blocks - bin->free_blocks;
    size_t fresh = bin->free_blocks - bin->free_swept;
    return fresh * class->size > purge_keep(used * class->size);
}

/* Returns those of the blocks to their slabs that belong to the bin of `shard`, and marks them done
 * by a null slab. Returns how many. Aborts because of the first that its slab refuses. */
static unsigned flush_to_shard(
    unsigned shard, unsigned class, void *const *blocks, struct slab **slabs, unsigned count)
{
    struct bin *bin = bin_of(shard, class);
    struct list empty = {NULL};
    unsigned done = 0;
    const void *refused = NULL;
    struct slab *slab = NULL;
    lock_acquire(&bin->lock);
    for (unsigned i = 0, run; i < count && !refused; i += run) {
        slab = slabs[i];
        for (run = 1; i + run < count && slabs[i + run] == slab; run++) {
        }
        if (!slab || slab->shard != shard)
            continue;
        unsigned put = slab_put(slab, blocks + i, run);
        if (UNLIKELY(put < run))
            refused = blocks[i + put];
        memset(slabs + i, 0, run * sizeof(void *));
        done += put;
        bin->free_blocks += put;
        if (slab->free_blocks == slab->blocks)
            detach(bin, slab, &empty);
        else
            relist(bin, slab);
    }
    bool excess = has_excess(bin);
    lock_release(&bin->lock);
    if (UNLIKELY(refused != NULL))
        slab_refuse(slab, refused, "free");
    destroy_all(&empty);
    if (excess)
        purge_arm();
    return done;
}

void bin_flush(unsigned shard, unsigned class, void *const *blocks, unsigned count)
{
    struct slab *slabs[FLUSH_MAX];
    size_t slab_bytes = size_classes[class].units * UNIT_SIZE;
    ASSERT(count <= FLUSH_MAX);
    struct slab *slab = NULL;
    uintptr_t base = 0;
    for (unsigned i = 0; i < count; i++) {
        if ((uintptr_t)blocks[i] - base >= slab_bytes) {
            slab = slab_of(blocks[i], class);
            base = (uintptr_t)slab->base;
        }
        slabs[i] = slab;
    }
    for (unsigned i = 0; i < count; i++) {
        if (!slabs[i])
            continue;
        unsigned owner = slabs[i]->shard;
        unsigned done = flush_to_shard(owner, class, blocks + i, slabs + i, count - i);
        if (owner != shard)
            ATOMIC_ADD_RELAXED(&bin_of(owner, class)->remote_blocks, done);
    }
}

bool bin_block_is_free(const void *block, const char *call)
{
    struct slab *slab = slab_lookup(block);
    if (!slab)
        return false;
    unsigned index = slab_index(slab, block, call);
    struct bin *bin = bin_of(slab->shard, slab->class);
    lock_acquire(&bin->lock);
    bool free = bitmap_test(slab->free, index);
    lock_release(&bin->lock);
    return free;
}

/* The next bin that has slabs; the first one after NULL. */
static struct bin *next_bin(struct bin *bin)
{
    struct bin *end = &bins[0][0] + (size_t)shard_count() * CLASS_COUNT;
    for (bin = bin ? bin + 1 : &bins[0][0]; bin < end; bin++)
        if (ATOMIC_LOAD_RELAXED(&bin->slab_count))
            return bin;
    return NULL;
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

static SLOW_PATH void tick_bin(struct bin *bin, enum purge_tick tick)
{
    lock_acquire(&bin->lock);
    size_t unused = bin->free_unused - size_min(bin->free_unused, bin->free_swept);
    bool idle =
        unused * size_classes[class_of(bin)].size > size_max(idle_bytes_min, purge_kept_bytes());
    bool excess = has_excess(bin);
    if (tick == PURGE_TICK_GROWTH ? excess : idle) {
        ATOMIC_STORE_RELAXED(&bin->sweeping, true);
        ATOMIC_STORE_RELEASE(&sweeps_go_on, true);
    }
    if (tick == PURGE_TICK_IDLE)
        bin->free_unused = bin->free_blocks;
    lock_release(&bin->lock);
    if (excess)
        purge_arm();
}

/* Goes on with the bin's sweep, if there is one. */
static bool step_bin(struct bin *bin)
{
    struct list empty = {NULL};
    if (!ATOMIC_LOAD_RELAXED(&bin->sweeping))
        return false;
    lock_acquire(&bin->lock);
    if (bin->sweeping)
        purge_account(sweep(bin, SWEEP_SLABS, SWEEP_FULLNESS_MIN, &empty));
    lock_release(&bin->lock);
    destroy_all(&empty);
    return true;
}

size_t bin_purge_all(void)
{
    size_t total = 0;
    for (struct bin *bin = NULL; (bin = next_bin(bin)) != NULL;)
        total += purge_bin(bin);
    return total;
}

void bin_tick(enum purge_tick tick)
{
    for (struct bin *bin = NULL; (bin = next_bin(bin)) != NULL;)
        tick_bin(bin, tick);
}

bool bin_sweep_step(void)
{
    if (LIKELY(!ATOMIC_LOAD_RELAXED(&sweeps_go_on)))
        return false;
    /* Before the look, so that a sweep that begins meanwhile is not forgotten. Acquire pairs with
     * release in tick_bin. */
    if (!__atomic_exchange_n(&sweeps_go_on, false, __ATOMIC_ACQ_REL))
        return false;
    for (struct bin *bin = NULL; (bin = next_bin(bin)) != NULL;) {
        if (step_bin(bin)) {
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
        if (!slab || slab->class != class || slab->shard != shard || !slab->joined ||
            slab->base != superslab_address(superslab, unit * UNIT_PAGES))
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
            struct bin *bin = &bins[shard][class];
            uint32_t free_blocks = 0;
            lock_acquire(&bin->lock);
            for (unsigned level = 0; level < FULLNESS_LEVELS; level++) {
                struct list_node *node = bin->slabs[level].first;
                for (; node; node = node->next) {
                    struct slab *slab = CONTAINER_OF(node, struct slab, by_fullness);
                    slab_check(slab);
                    ASSERT(slab->class == class && slab->shard == shard);
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
