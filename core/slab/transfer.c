/* See transfer.h. */
#include "slab/transfer.h"

#include <string.h>

#include "base/bits.h"
#include "base/poison.h"
#include "base/policy.h"
#include "base/pressure.h"
#include "base/tuning.h"
#include "map/metadata.h"
#include "os/fatal.h"
#include "slab/bin.h"
#include "slab/shard.h"

uint64_t transfer_stocked[CLASS_COUNT];

static bool closed; /* atomic relaxed, any thread */

/* How many are drained at a time: half a flush, as these nest, and stacks may be short. */
enum { DRAIN_MAX = FLUSH_MAX / 2 };

static unsigned factor(unsigned size_class)
{
    bool is_mid = size_class > TINY_CLASS_LAST && size_class < SINGLE_CLASS_FIRST;
    return is_mid ? TRANSFER_MID_FACTOR : 1;
}

static unsigned blocks_max(unsigned size_class)
{
    if (ATOMIC_LOAD_RELAXED(&closed) || (size_class_is_long(size_class) && pressure_is_near()))
        return 0;
    size_t bytes = (size_t)POLICY(magazine_kib) * KIB * TRANSFER_MAGAZINES * factor(size_class);
    if (size_class_is_single(size_class))
        bytes = size_max(bytes, pressure_used() / TRANSFER_SINGLE_PART);
    size_t blocks = size_min(bytes / size_classes[size_class].size, TRANSFER_BLOCKS);
    return (unsigned)(blocks / size_min(shard_count(), TRANSFER_PARTS));
}

/* Lock held. */
static void set_count(struct bin *bin, uint32_t count)
{
    ATOMIC_STORE_RELAXED(&bin->stacked, count);
    if (bin->stack_unused > count)
        bin->stack_unused = count;
}

static unsigned blocks_in(const struct bin *bin)
{
    return ATOMIC_LOAD_RELAXED(&bin->stacked);
}

/* Aborts at the first bad block, with the reason. */
static SLOW_PATH void fatal_starts(unsigned size_class, void *const *blocks, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const struct slab *slab = slab_lookup(blocks[i]);
        if (!slab || slab->size_class != size_class)
            fatal_pointer("free", DEFECT_DOUBLE_FREE, blocks[i], NULL, 0);
        slab_index(slab, blocks[i], "free");
    }
}

/* Gives the stack room for `wanted` blocks, if there is memory. Outside the lock, a new record is
 * made before, and the superfluous one freed after. */
static SLOW_PATH void grow_stack(struct bin *bin, unsigned wanted)
{
    uint32_t slots = TRANSFER_SLOTS_MIN;
    while (slots < wanted)
        slots *= 2;
    void **stack = metadata_alloc(slots * sizeof *stack), **left = stack;
    if (!stack)
        return;
    uint32_t left_slots = slots;
    lock_acquire(&bin->lock);
    if (bin->stack_slots < slots) {
        left = bin->stack;
        left_slots = bin->stack_slots;
        if (left)
            memcpy(stack, left, bin->stacked * sizeof *stack);
        KEEP_STORE_ORDER();
        bin->stack = stack;
        KEEP_STORE_ORDER();
        ATOMIC_STORE_RELAXED(&bin->stack_slots, slots);
    }
    lock_release(&bin->lock);
    /* 0 with a stack: a child of a fork between the two stores, which does not know how many. */
    if (left_slots)
        metadata_free(left, left_slots * sizeof *left);
}

void transfer_note_stock(const struct bin *bin, unsigned shard, unsigned size_class)
{
    /* Bins of samples have neither. */
    if (shard >= SHARD_MAX)
        return;
    uint64_t bit = (uint64_t)1 << shard;
    bool was = (ATOMIC_LOAD_RELAXED(&transfer_stocked[size_class]) & bit) != 0;
    /* Only the holder of the bin's lock changes this bit. */
    if (was != (bin->stacked || bin->kept))
        __atomic_fetch_add(&transfer_stocked[size_class], was ? -bit : bit, __ATOMIC_RELAXED);
}

unsigned transfer_take(struct bin *bin, unsigned size_class, void **blocks, unsigned count)
{
    count = (unsigned)size_min(count, bin->stacked);
    if (!count)
        return 0;
    set_count(bin, bin->stacked - count);
    memcpy(blocks, bin->stack + bin->stacked, count * sizeof *blocks);
    unpoison_blocks(blocks, count, size_classes[size_class].size);
    return count;
}

/* The same, without the lock; notes that the shard has none left. */
static unsigned take_stacked(unsigned shard, unsigned size_class, void **blocks, unsigned count)
{
    struct bin *bin = bin_of(shard, size_class);
    if (!blocks_in(bin) && ATOMIC_LOAD_RELAXED(&bin->kept))
        return 0;
    lock_acquire(&bin->lock);
    count = transfer_take(bin, size_class, blocks, count);
    transfer_note_stock(bin, shard, size_class);
    lock_release(&bin->lock);
    return count;
}

/* Takes up to `count` blocks off the stack and returns them to the slabs; returns how many. */
static SLOW_PATH unsigned drain(unsigned shard, unsigned size_class, unsigned count)
{
    void *blocks[DRAIN_MAX];
    count = (unsigned)size_min(count, DRAIN_MAX);
    count = take_stacked(shard, size_class, blocks, count);
    bin_flush(shard, size_class, blocks, count);
    return count;
}

/* Puts as many of the blocks as fit onto the stack; returns how many. */
static unsigned put(unsigned shard, unsigned size_class, void *const *blocks, unsigned count)
{
    struct bin *bin = bin_of(shard, size_class);
    unsigned most = blocks_max(size_class), held = blocks_in(bin);
    uint32_t freed = ATOMIC_LOAD_RELAXED(&bin->stack_freed) + count;
    ATOMIC_STORE_RELAXED(&bin->stack_freed, freed);
    if (size_classes[size_class].size <= TINY_MAX && freed > TRANSFER_FREED_MAX) {
        if (held)
            drain(shard, size_class, DRAIN_MAX);
        return 0;
    }
    if (held >= most)
        return 0;
    count = (unsigned)size_min(count, most - held);
    if (UNLIKELY(!slab_are_starts(size_class, blocks, count)))
        fatal_starts(size_class, blocks, count);
    if (UNLIKELY(ATOMIC_LOAD_RELAXED(&bin->stack_slots) < held + count))
        grow_stack(bin, held + count);
    lock_acquire(&bin->lock);
    held = bin->stacked;
    most = (unsigned)size_min(most, bin->stack_slots);
    count = (unsigned)size_min(count, most > held ? most - held : 0);
    poison_blocks(blocks, count, size_classes[size_class].size);
    if (count)
        memcpy(bin->stack + held, blocks, count * sizeof *blocks);
    KEEP_STORE_ORDER();
    set_count(bin, held + count);
    transfer_note_stock(bin, shard, size_class);
    lock_release(&bin->lock);
    if (held + count > most / 2 || POLICY(background))
        pressure_arm();
    return count;
}

/* The shard of the block's slab; `shard` if the slab is gone, because of a second free. */
static unsigned home_shard(const void *block, unsigned shard)
{
    const struct slab *slab = slab_find(block);
    return slab ? slab->shard : shard;
}

unsigned transfer_put(unsigned shard, unsigned size_class, void *const *blocks, unsigned count)
{
    /* One block stands for the batch; a wrong guess is harmless, since any shard can serve any
     * block. */
    unsigned home = home_shard(blocks[0], shard), kept = 0;
    /* No other shard would take a twin: they are for the even shards and for the odd ones. */
    unsigned size = size_class > SIZE_COUNT ? size_class - SIZE_COUNT : size_class;
    if (home == shard || size_class_for_shard(size, shard) == size_class)
        kept = put(shard, size_class, blocks, count);
    if (home != shard && kept < count)
        kept += put(home, size_class, blocks + kept, count - kept);
    return kept;
}

unsigned transfer_take_from_others(
    unsigned shard, unsigned size_class, void **blocks, unsigned count)
{
    uint64_t others = ATOMIC_LOAD_RELAXED(&transfer_stocked[size_class]) & ~((uint64_t)1 << shard);
    while (others) {
        /* The next shard behind this one, so that not all ask the same. */
        uint64_t behind = others & ~(((uint64_t)2 << shard) - 1);
        unsigned other = bits_lowest(behind ? behind : others);
        transfer_ask(bin_of(other, size_class));
        unsigned got = take_stacked(other, size_class, blocks, count);
        if (got)
            return got;
        others &= ~((uint64_t)1 << other);
    }
    return 0;
}

SLOW_PATH bool transfer_holds(unsigned size_class, const void *block)
{
    bool found = false;
    for (unsigned shard = 0; shard < shard_count() && !found; shard++) {
        struct bin *bin = bin_of(shard, size_class);
        if (!blocks_in(bin))
            continue;
        lock_acquire(&bin->lock);
        for (unsigned i = 0; i < bin->stacked && !found; i++)
            found = bin->stack[i] == block;
        lock_release(&bin->lock);
    }
    return found;
}

unsigned transfer_blocks(unsigned size_class)
{
    unsigned total = 0;
    for (unsigned shard = 0; shard < shard_count(); shard++)
        total += blocks_in(bin_of(shard, size_class));
    return total;
}

/* ---- Draining -------------------------------------------------------------------------------- */

/* Drains the cache; returns blocks. */
static unsigned drain_all(unsigned shard, unsigned size_class)
{
    /* Other threads may go on to put blocks in meanwhile. */
    unsigned total = 0, got, left = blocks_in(bin_of(shard, size_class));
    do {
        got = drain(shard, size_class, left);
        total += got;
        left -= got;
    } while (got && left);
    return total;
}

bool transfer_may(unsigned cache)
{
    return blocks_in(bin_at(cache)) != 0;
}

void transfer_look(unsigned cache)
{
    unsigned size_class = cache % CLASS_COUNT;
    /* Without `factor`: if a cache has more room, the same memory counts as much. */
    if (blocks_in(bin_at(cache)) > blocks_max(size_class) / (2 * factor(size_class)))
        pressure_arm_still();
}

bool transfer_step(unsigned cache)
{
    struct bin *bin = bin_at(cache);
    unsigned size_class = cache % CLASS_COUNT;
    void *blocks[DRAIN_MAX];
    lock_acquire(&bin->lock);
    /* After a fork in the middle of a change, there may be fewer. */
    unsigned unused = (unsigned)size_min(bin->stack_unused, bin->stacked);
    unsigned count = transfer_take(bin, size_class, blocks, (unsigned)size_min(unused, DRAIN_MAX));
    /* What is left of them; with none, the next round's begin to count. */
    bin->stack_unused = unused > count ? unused - count : bin->stacked;
    lock_release(&bin->lock);
    bin_flush(cache / CLASS_COUNT, size_class, blocks, count);
    return unused > count;
}

bool transfer_drain(size_t most)
{
    unsigned total = 0;
    /* The twins, which are short, come last. */
    for (unsigned left = CLASS_COUNT - 1; left > 0; left--) {
        unsigned size_class = left > TWINS ? left - TWINS : SIZE_COUNT + left;
        uint64_t shards = ATOMIC_LOAD_RELAXED(&transfer_stocked[size_class]);
        for (; shards && total < most; shards &= shards - 1)
            total += drain_all(bits_lowest(shards), size_class);
    }
    return total != 0;
}

void transfer_close(void)
{
    ATOMIC_STORE_RELAXED(&closed, true);
}
