/* See bin.h. */
#include "slab/bin.h"

#include <string.h>

#include "base/policy.h"
#include "base/pressure.h"
#include "base/tuning.h"
#include "os/fatal.h"
#include "os/os.h"
#include "slab/shard.h"
#include "slab/transfer.h"

/* ---- Lists ----------------------------------------------------------------------------------- */

unsigned bin_fullness(const struct slab *slab)
{
    unsigned quarters = slab->free_blocks * 4u;
    return (quarters > slab->blocks) + (quarters > slab->blocks * 2u) +
           (quarters > slab->blocks * 3u) + (slab->free_blocks == slab->blocks);
}

static void set_kept(struct bin *bin, const struct slab *slab, uint32_t kept)
{
    ATOMIC_STORE_RELAXED(&bin->kept, kept);
    bin->kept_unused = (uint32_t)size_min(bin->kept_unused, kept);
    transfer_note_stock(bin, slab->shard, slab->size_class);
}

/* Lock held. */
static void unlist(struct bin *bin, struct slab *slab)
{
    list_remove(&slab->by_fullness);
    if (slab->fullness == FULLNESS_EMPTY)
        set_kept(bin, slab, bin->kept - 1);
}

void bin_relist(struct bin *bin, struct slab *slab)
{
    bool listed = list_contains(&slab->by_fullness);
    unsigned fullness = bin_fullness(slab);
    if (listed && slab->free_blocks && slab->fullness == fullness)
        return;
    if (listed)
        unlist(bin, slab);
    slab->fullness = (uint8_t)fullness;
    if (!slab->free_blocks)
        return;
    list_push(&bin->slabs[fullness], &slab->by_fullness);
    if (fullness == FULLNESS_EMPTY)
        set_kept(bin, slab, bin->kept + 1);
}

/* The fullest slab with free blocks; unless `allow_fresh`, with some below its watermark, as most
 * have. Lock held. */
static struct slab *fullest(struct bin *bin, bool allow_fresh)
{
    for (unsigned i = 0; i <= FULLNESS_LEVELS + 1; i++) {
        /* Slabs that a sweep has looked at come after all others in use. */
        struct list *list = i < FULLNESS_LEVELS    ? &bin->slabs[i]
                            : i == FULLNESS_LEVELS ? &bin->swept
                                                   : &bin->slabs[FULLNESS_EMPTY];
        for (struct list_node *node = list->first; node; node = node->next) {
            struct slab *slab = CONTAINER_OF(node, struct slab, by_fullness);
            if (allow_fresh || slab_used_blocks(slab))
                return slab;
        }
    }
    return NULL;
}

uint64_t bin_listed_blocks(const struct bin *bin)
{
    const struct list_node *empty = bin->slabs[FULLNESS_EMPTY].first;
    uint64_t blocks = empty ? CONTAINER_OF(empty, struct slab, by_fullness)->blocks : 0;
    return bin->free_blocks - bin->kept * blocks;
}

void bin_lower_bounds(struct bin *bin)
{
    uint64_t listed = bin_listed_blocks(bin);
    bin->free_swept = size_min(bin->free_swept, listed);
    bin->free_unused = size_min(bin->free_unused, listed);
}

void bin_detach(struct bin *bin, struct slab *slab, struct list *gone)
{
    if (list_contains(&slab->by_fullness))
        unlist(bin, slab);
    slab->attached = false;
    if (bin->newest == slab)
        bin->newest = NULL;
    COUNTER_ADD(&bin->slab_count, -1u);
    COUNTER_ADD(&bin->free_blocks, -(uint64_t)slab->blocks);
    bin_lower_bounds(bin);
    list_push(gone, &slab->by_fullness);
}

void bin_miss(struct bin *bin, unsigned slabs)
{
    bin->missed = (uint16_t)size_min((size_t)bin->missed + slabs, UINT16_MAX);
}

void bin_destroy(struct list *gone)
{
    while (gone->first) {
        struct slab *slab = CONTAINER_OF(gone->first, struct slab, by_fullness);
        list_remove(&slab->by_fullness);
        slab_destroy(slab);
    }
}

/* ---- Refill ---------------------------------------------------------------------------------- */

bool bin_may_borrow(unsigned shard, unsigned size_class)
{
    struct bin *bin = bin_of(shard, size_class);
    uint8_t loans = ATOMIC_LOAD_RELAXED(&bin->loans);
    if (ATOMIC_LOAD_RELAXED(&bin->slab_count) || loans >= LOANS_MAX)
        return false;
    /* A race costs a loan too many. */
    ATOMIC_STORE_RELAXED(&bin->loans, (uint8_t)(loans + 1));
    return true;
}

/* True if the program seems to write to the blocks of the slab, other than zeros. A guess by a few
 * pages, so concurrent writes do not matter. */
__attribute__((no_sanitize("address", "thread"))) SLOW_PATH static bool is_written(
    const struct slab *slab)
{
    enum { STRIDE = UNIT_PAGES / POPULATE_PLACES };
    unsigned written = 0;
    size_t end = slab->blocks * (size_t)size_classes[slab->size_class].size;
    hardened_look_anywhere(true);
    for (unsigned place = 0; place < POPULATE_PLACES; place++) {
        if (((size_t)place * STRIDE + 1) * PAGE_SIZE > end)
            break;
        const volatile uint64_t *words =
            (const volatile uint64_t *)(slab->base + (size_t)place * STRIDE * PAGE_SIZE);
        unsigned i = 0;
        while (i < PAGE_SIZE / sizeof *words && !words[i])
            i++;
        written += i < PAGE_SIZE / sizeof *words;
    }
    hardened_look_anywhere(false);
    return written >= POPULATE_WRITTEN;
}

/* How many bytes of a fresh slab are to get memory in one call, instead of by a page fault each: if
 * the slab before seems to be written to, one page for each slab of the bin. Only for blocks
 * shorter than a page: of longer ones a program may use a part, and may have made whole pages
 * unreadable. Their blocks count as handed out. Lock held: so the newest slab is the bin's, and its
 * pages can be read. */
static size_t start_populated(const struct bin *bin, struct slab *slab)
{
    size_t size = size_classes[slab->size_class].size;
    if (!slab->clean || size >= PAGE_SIZE || !bin->newest || !is_written(bin->newest))
        return 0;
    size_t bytes = size_min(bin->slab_count, slab->blocks * size / PAGE_SIZE) * PAGE_SIZE;
    slab->watermark =
        (uint16_t)size_min(size_class_index(slab->size_class, bytes - 1) + 1, slab->blocks);
    slab_touch(slab, 0, slab->watermark);
    return bytes;
}

/* How many empty slabs a bin may keep: as many bytes as KEPT_MAGAZINES of the longest magazines.
 * None with one block: these wait in transfer caches, and the page heap can make others of the
 * rest. The hardened library has no such caches, and slabs know how much of them is open. */
static unsigned keep_max(unsigned size_class)
{
    if (size_class_is_single(size_class) && !HARDENED)
        return 0;
    size_t bytes = (size_t)POLICY(magazine_kib) * KIB * KEPT_MAGAZINES;
    return (unsigned)(bytes / (size_classes[size_class].units * UNIT_SIZE));
}

/* Adds the slab to the bin. If the bin gave one away since the last tick, it should have kept that
 * one, and may keep one more from now on. Lock held. */
static void attach(struct bin *bin, struct slab *slab)
{
    COUNTER_ADD(&bin->slab_count, 1);
    slab->attached = true;
    bin->newest = slab;
    COUNTER_ADD(&bin->free_blocks, slab->free_blocks);
    bin_relist(bin, slab);
    /* Samples come one by one, and slabs kept for them would arm the purge. */
    if (bin->missed && !slab_is_sampled(slab)) {
        bin->missed--;
        bin->keep += bin->keep < keep_max(slab->size_class);
    }
}

/* Bytes of the grains in `clean` that are no longer clean. */
static size_t bytes_touched(const struct slab *slab, uint64_t clean)
{
    clean &= ~slab->clean_grains;
    return clean ? bits_count(clean) * slab_grain(slab) : 0;
}

/* Takes blocks from existing slabs, and counts the bytes that are no longer clean. Lock held. */
static unsigned take_listed(
    struct bin *bin, void **blocks, unsigned count, bool allow_fresh, size_t *touched)
{
    struct slab *slab;
    unsigned taken = 0;
    while (taken < count && (slab = fullest(bin, allow_fresh)) != NULL) {
        unsigned there = allow_fresh ? slab->free_blocks : slab_used_blocks(slab);
        unsigned got = (unsigned)size_min(count - taken, there);
        uint64_t clean = slab->clean_grains;
        taken += slab_take(slab, blocks + count - taken - got, got);
        *touched += bytes_touched(slab, clean);
        COUNTER_ADD(&bin->free_blocks, -(uint64_t)got);
        bin_relist(bin, slab);
    }
    bin_lower_bounds(bin);
    if (taken && taken < count)
        memmove(blocks, blocks + count - taken, taken * sizeof *blocks);
    return taken;
}

/* Takes blocks that are there: off the stack, or else from slabs. */
static unsigned take_there(
    struct bin *bin, unsigned size_class, void **blocks, unsigned count, bool allow_fresh)
{
    size_t touched = 0;
    transfer_ask(bin);
    if (!ATOMIC_LOAD_RELAXED(&bin->stacked) && !ATOMIC_LOAD_RELAXED(&bin->free_blocks))
        return 0;
    lock_acquire(&bin->lock);
    unsigned taken = transfer_take(bin, size_class, blocks, count);
    if (!taken)
        taken = take_listed(bin, blocks, count, allow_fresh, &touched);
    lock_release(&bin->lock);
    pressure_taken(touched, false);
    return taken;
}

unsigned bin_refill(
    unsigned shard, unsigned size_class, void **blocks, unsigned count, unsigned alignment,
    enum refill cost)
{
    struct bin *bin = bin_of(shard, size_class);
    unsigned taken = 0;
    if (alignment <= 1)
        taken = take_there(bin, size_class, blocks, count, cost != REFILL_USED);
    if (taken || cost == REFILL_USED)
        return taken;
    struct slab *slab = slab_create(size_class, shard, alignment, cost == REFILL_MAP);
    if (!slab)
        return 0;
    uint64_t clean = slab->clean_grains;
    lock_acquire(&bin->lock);
    size_t populated = start_populated(bin, slab);
    taken = slab_take(slab, blocks, count);
    size_t touched = bytes_touched(slab, clean);
    attach(bin, slab);
    lock_release(&bin->lock);
    /* The slab stays while the caller has its blocks. If the system refuses, it may have given some
     * of the pages. */
    if (populated)
        os_populate(slab->base, populated);
    pressure_taken(touched, false);
    return taken;
}

/* Adds a slab without free blocks to the bin, or takes it away. */
static void set_attached(struct bin *bin, struct slab *slab, bool attached)
{
    lock_acquire(&bin->lock);
    COUNTER_ADD(&bin->slab_count, attached ? 1 : -1u);
    slab->attached = attached;
    lock_release(&bin->lock);
}

bool bin_resize(struct slab *slab, unsigned size_class)
{
    /* In between it belongs to no bin, so that both are right whenever the process forks. */
    set_attached(bin_of(slab->shard, slab->size_class), slab, false);
    bool resized = slab_resize(slab, size_class);
    set_attached(bin_of(slab->shard, slab->size_class), slab, true);
    return resized;
}

/* ---- Flush ----------------------------------------------------------------------------------- */

/* Slab of a block that a caller freed as one of the class: the class map had such a slab then. If
 * that is gone, all its blocks were free, so this is a double free. */
static struct slab *slab_of(const void *block, unsigned size_class)
{
    struct slab *slab = slab_lookup(block);
    if (UNLIKELY(!slab || slab->size_class != size_class))
        fatal_pointer("free", DEFECT_DOUBLE_FREE, block, NULL, 0);
    return slab;
}

bool bin_has_excess(const struct bin *bin, unsigned size_class)
{
    const struct size_class *layout = &size_classes[size_class];
    size_t used = (size_t)bin->slab_count * slab_blocks_of(size_class) - bin->free_blocks;
    size_t more = bin_listed_blocks(bin) - bin->free_swept;
    return more * layout->size > pressure_keep(used * layout->size);
}

/* After all blocks of the slab were freed: it stays only if the bin may keep it. Lock held. */
static void settle_empty(struct bin *bin, struct slab *slab, struct list *gone)
{
    if (bin->kept < bin->keep && !pressure_is_near()) {
        bin_relist(bin, slab);
        bin_lower_bounds(bin);
    } else {
        bin_detach(bin, slab, gone);
        bin_miss(bin, 1);
    }
}

/* Fetches the records of the blocks' slabs, and the bits in them: a thread that frees in no order
 * finds few in the processor's cache. Each is the end of a chain of loads, but many of these can be
 * under way at a time. */
static void prefetch_slabs(unsigned size_class, void *const *blocks, unsigned count)
{
    const struct size_class *layout = &size_classes[size_class];
    uintptr_t in_slab = layout->alignment * UNIT_SIZE - 1, before = 0;
    for (unsigned i = 0; i < count; i++) {
        uintptr_t address = (uintptr_t)blocks[i], apart = address ^ before;
        before = address;
        const struct slab *slab = apart >> UNIT_SHIFT ? slab_find(blocks[i]) : NULL;
        if (!slab)
            continue;
        __builtin_prefetch(slab, 1);
        __builtin_prefetch(&slab->free[size_class_index(size_class, address & in_slab) / 64], 1);
    }
}

/* Returns the blocks whose slabs belong to the bin of `shard`, and moves the others to the front of
 * `blocks`; returns how many these are. Aborts at the first block that its slab refuses. */
static unsigned flush_to_shard(unsigned shard, unsigned size_class, void **blocks, unsigned count)
{
    struct bin *bin = bin_of(shard, size_class);
    struct list gone = {NULL};
    unsigned left = 0, put;
    const void *refused = NULL;
    struct slab *slab = NULL;
    prefetch_slabs(size_class, blocks, count);
    lock_acquire(&bin->lock);
    for (unsigned i = 0; i < count; i += put) {
        slab = slab_find(blocks[i]);
        if (UNLIKELY(!slab || slab->shard != shard || slab->size_class != size_class)) {
            blocks[left++] = blocks[i];
            put = 1;
            continue;
        }
        put = slab_put(slab, blocks + i, count - i);
        if (UNLIKELY(!put)) {
            refused = blocks[i];
            break;
        }
        COUNTER_ADD(&bin->free_blocks, put);
        if (UNLIKELY(slab->free_blocks == slab->blocks))
            settle_empty(bin, slab, &gone);
        else
            bin_relist(bin, slab);
    }
    bool excess = bin_has_excess(bin, size_class);
    lock_release(&bin->lock);
    if (UNLIKELY(refused != NULL))
        slab_refuse(slab, refused, "free");
    bin_destroy(&gone);
    if (excess)
        pressure_arm();
    return left;
}

void bin_flush(unsigned shard, unsigned size_class, void **blocks, unsigned count)
{
    while (count) {
        unsigned owner = slab_of(blocks[0], size_class)->shard;
        unsigned left = flush_to_shard(owner, size_class, blocks, count);
        if (owner != shard)
            ATOMIC_ADD_RELAXED(&bin_of(owner, size_class)->remote_blocks, count - left);
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
