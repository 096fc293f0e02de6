/* See sweep.h. */
#include "slab/sweep.h"

#include "base/assert.h"
#include "base/tuning.h"
#include "os/fatal.h"
#include "os/os.h"
#include "slab/shard.h"
#include "slab/transfer.h"
#include "span/page_heap.h"

/* ---- Pages inside slabs ---------------------------------------------------------------------- */

/* Grains of the slab (slab_grain) with memory and without a used block, not purged yet: a bit a
 * grain. Lock held. */
static SLOW_PATH uint64_t purgeable_grains(const struct slab *slab)
{
    unsigned size = size_classes[slab->size_class].size, grain = (unsigned)slab_grain(slab);
    /* What lies behind the last block goes with it, if it is free: somebody has to hold a block of
     * the slab meanwhile. */
    bool whole = slab->watermark == slab->blocks && bitmap_test(slab->free, slab->blocks - 1u);
    unsigned bytes = size_classes[slab->size_class].units * (unsigned)UNIT_SIZE;
    unsigned end = (whole ? bytes : slab->watermark * size) / grain;
    uint64_t grains = 0;
    for (unsigned i = 0; i < end;) {
        unsigned first = size_class_index(slab->size_class, i * (size_t)grain);
        unsigned used = (unsigned)bitmap_find(slab->free, first, slab->watermark, false);
        unsigned free_end = used == slab->watermark ? end : used * size / grain;
        if (free_end > i)
            grains |= bitmap_word_mask(0, i, free_end - i);
        i = ((used + 1) * size + grain - 1) / grain;
    }
    return grains & ~slab->clean_grains;
}

/* Takes or returns all blocks that touch the bytes, or else the last one: so no thread gets one
 * meanwhile, and none ends the slab. A block that is free when it comes back was freed twice. Taken
 * blocks do not count as free, as in the bitmap, from which a child of fork repairs the bin. Lock
 * held. */
static SLOW_PATH void set_blocks_of(
    struct bin *bin, struct slab *slab, size_t start, size_t length, bool free)
{
    unsigned first = size_class_index(slab->size_class, start);
    unsigned last = size_class_index(slab->size_class, start + length - 1);
    last = (unsigned)size_min(last, slab->blocks - 1u);
    first = (unsigned)size_min(first, last);
    for (unsigned i = first; i <= last; i++) {
        if (UNLIKELY(bitmap_test(slab->free, i) == free)) {
            /* Not with the lock held: the program may catch the signal and go on to free. */
            lock_release(&bin->lock);
            fatal_pointer("free", DEFECT_DOUBLE_FREE, slab_block(slab, i), NULL, 0);
        }
        (free ? bitmap_set : bitmap_clear)(slab->free, i);
    }
    unsigned count = last - first + 1;
    slab->free_blocks = (uint16_t)(free ? slab->free_blocks + count : slab->free_blocks - count);
    COUNTER_ADD(&bin->free_blocks, free ? count : -(uint64_t)count);
    if (free && first / 64 < slab->first_word)
        slab->first_word = (uint16_t)(first / 64);
    bin_relist(bin, slab);
    bin_lower_bounds(bin);
}

/* Purges the first run of purgeable grains of the slab; if one was purged just before, without
 * asking again whether the program observes the superslab. Called and returns with the bin's lock
 * held, releases it in between. Sets `*bytes` to the purged bytes, 0 if the system refuses; false:
 * there is no such run. */
static SLOW_PATH bool purge_slab_run(struct bin *bin, struct slab *slab, bool asked, size_t *bytes)
{
    uint64_t grains = purgeable_grains(slab);
    if (!grains)
        return false;
    unsigned first = bits_lowest(grains);
    uint64_t rest = ~(grains >> first);
    size_t grain = slab_grain(slab), start = first * grain;
    unsigned count = rest ? bits_lowest(rest) : 64 - first;
    count = (unsigned)size_min(count, size_max(PURGE_STEP / grain, 1));
    size_t length = count * grain;
    set_blocks_of(bin, slab, start, length, false);
    lock_release(&bin->lock);
    bool purged = page_heap_purge_pages(slab->superslab, slab->base + start, length, asked);
    lock_acquire(&bin->lock);
    set_blocks_of(bin, slab, start, length, true);
    if (purged)
        slab_add_clean(slab, bitmap_word_mask(0, first, count));
    *bytes = purged ? length : 0;
    return true;
}

/* ---- Sweeps ---------------------------------------------------------------------------------- */

/* Goes on with ending a sweep; no new one begins before the end. Lock held. */
static void end_sweep(struct bin *bin)
{
    ATOMIC_STORE_RELAXED(&bin->sweeping, SWEEP_ENDS);
    for (unsigned i = 0; i < SWEPT_SLABS && bin->swept.first; i++) {
        struct slab *slab = CONTAINER_OF(bin->swept.first, struct slab, by_fullness);
        ASSERT(list_contains(&slab->by_fullness) && slab->free_blocks);
        list_remove(&slab->by_fullness);
        bin_relist(bin, slab);
    }
    if (bin->swept.first)
        return;
    ATOMIC_STORE_RELAXED(&bin->sweeping, SWEEP_NONE);
    bin->free_swept = bin_listed_blocks(bin);
}

/* The emptiest slab, on this list or one of emptier slabs, that the sweep has not looked at yet;
 * NULL: none. */
static struct slab *next_to_sweep(struct bin *bin, unsigned fullness_min)
{
    for (unsigned i = FULLNESS_LEVELS; i-- > fullness_min;)
        if (bin->slabs[i].first)
            return CONTAINER_OF(bin->slabs[i].first, struct slab, by_fullness);
    return NULL;
}

/* Purges purgeable grains in up to SWEEP_SLABS slabs, the emptiest first, down to those of the list
 * `fullness_min`, until these are about `most` bytes, counted as in PURGE_CALL, or the system
 * refuses; returns bytes. Slabs that were looked at wait on a list of their own until the sweep
 * ends, unless a thread that takes or frees a block moves them back. Lock held, but released now
 * and then; slabs that became empty are pushed on `*gone`. */
static SLOW_PATH size_t
sweep_slabs(struct bin *bin, size_t most, unsigned fullness_min, struct list *gone)
{
    size_t total = 0, spent = 0, bytes = 1;
    struct slab *slab;
    for (unsigned slabs = 0; slabs < SWEEP_SLABS && spent < most && bytes &&
                             (slab = next_to_sweep(bin, fullness_min)) != NULL;
         slabs++) {
        unsigned runs = 0;
        for (; spent < most && bytes && runs < SWEEP_RUNS_MAX; runs++, total += bytes) {
            if (!purge_slab_run(bin, slab, runs > 0, &bytes))
                break;
            spent += size_max(bytes, PURGE_CALL);
        }
        if (slab->free_blocks == slab->blocks) {
            bin_detach(bin, slab, gone);
        } else if (spent < most && list_contains(&slab->by_fullness)) {
            list_remove(&slab->by_fullness);
            list_push(&bin->swept, &slab->by_fullness);
        }
    }
    /* Another thread may have ended it while the lock was open. */
    if (!bytes || bin->sweeping != SWEEP_LOOKS || !next_to_sweep(bin, fullness_min))
        end_sweep(bin);
    return total;
}

/* ---- Empty slabs ----------------------------------------------------------------------------- */

/* Takes up to `most` of the empty slabs away from the bin; returns how many. Lock held. */
static unsigned detach_empties(struct bin *bin, unsigned most, struct list *gone)
{
    unsigned count = 0;
    for (; count < most && bin->slabs[FULLNESS_EMPTY].first; count++)
        bin_detach(
            bin, CONTAINER_OF(bin->slabs[FULLNESS_EMPTY].first, struct slab, by_fullness), gone);
    bin->keep = (uint16_t)(bin->keep - size_min(bin->keep, count));
    return count;
}

static size_t bytes_of_slabs(uint32_t count, unsigned size_class)
{
    return (size_t)count * size_classes[size_class].units * UNIT_SIZE;
}

/* Gives all empty slabs of the bin to the page heap; returns bytes. If the bin makes them anew, it
 * will keep as many again. */
static size_t release_empties(struct bin *bin, unsigned size_class)
{
    struct list gone = {NULL};
    if (!ATOMIC_LOAD_RELAXED(&bin->kept))
        return 0;
    lock_acquire(&bin->lock);
    unsigned count = detach_empties(bin, bin->kept, &gone);
    bin_miss(bin, count);
    lock_release(&bin->lock);
    bin_destroy(&gone);
    return bytes_of_slabs(count, size_class);
}

bool sweep_empties(void)
{
    size_t bytes = 0;
    for (unsigned size_class = 1; size_class < CLASS_COUNT; size_class++) {
        uint64_t shards = ATOMIC_LOAD_RELAXED(&transfer_stocked[size_class]);
        for (; shards && bytes < REGION_SIZE; shards &= shards - 1)
            bytes += release_empties(bin_of(bits_lowest(shards), size_class), size_class);
    }
    return bytes != 0;
}

/* ---- Ticks ----------------------------------------------------------------------------------- */

bool sweep_may(unsigned number)
{
    return ATOMIC_LOAD_RELAXED(&bin_at(number)->slab_count) != 0;
}

/* Takes empty slabs away from the bin that it did not need since the hand last came by. Lock held.
 */
static void detach_unneeded(struct bin *bin, unsigned size_class, struct list *gone)
{
    size_t bytes = bytes_of_slabs(bin->kept_unused, size_class);
    detach_empties(bin, bytes > pressure_kept_bytes() ? bin->kept_unused : 0, gone);
    bin->kept_unused = bin->kept;
    bin->missed = 0;
}

void sweep_look(unsigned number, bool grown)
{
    struct bin *bin = bin_at(number);
    unsigned size_class = number % CLASS_COUNT;
    struct list gone = {NULL};
    lock_acquire(&bin->lock);
    size_t unused = bin->free_unused - size_min(bin->free_unused, bin->free_swept);
    size_t bytes = unused * size_classes[size_class].size;
    bool idle = bytes > size_max(SWEEP_IDLE_MIN, pressure_kept_bytes());
    bool excess = bin_has_excess(bin, size_class);
    if (!bin->sweeping && (grown ? excess : idle))
        ATOMIC_STORE_RELAXED(&bin->sweeping, SWEEP_LOOKS);
    if (!grown) {
        bin->free_unused = bin_listed_blocks(bin);
        detach_unneeded(bin, size_class, &gone);
    }
    /* Empty slabs may stay unneeded: the hand has to come again, if it would take them. */
    bool arm = excess || bytes_of_slabs(bin->kept, size_class) > pressure_kept_bytes();
    lock_release(&bin->lock);
    bin_destroy(&gone);
    if (arm)
        pressure_arm_still();
}

/* Goes on with the sweep of the bin, as sweep_slabs; adds to `*purged`. True: it has not ended. */
static bool sweep_on(unsigned number, size_t most, unsigned fullness_min, size_t *purged)
{
    struct bin *bin = bin_at(number);
    struct list gone = {NULL};
    lock_acquire(&bin->lock);
    if (bin->sweeping == SWEEP_ENDS)
        end_sweep(bin);
    else if (bin->sweeping)
        *purged += sweep_slabs(bin, most, fullness_min, &gone);
    bool more = bin->sweeping != SWEEP_NONE;
    lock_release(&bin->lock);
    bin_destroy(&gone);
    return more;
}

bool sweep_step(unsigned number, size_t bytes)
{
    size_t purged = 0;
    bool more = sweep_on(number, bytes, 0, &purged);
    pressure_account(purged);
    return more;
}

static size_t sweep_bin(unsigned number, unsigned fullness_min)
{
    struct bin *bin = bin_at(number);
    size_t purged = 0, slabs = ATOMIC_LOAD_RELAXED(&bin->slab_count);
    release_empties(bin, number % CLASS_COUNT);
    lock_acquire(&bin->lock);
    ATOMIC_STORE_RELAXED(&bin->sweeping, SWEEP_LOOKS);
    lock_release(&bin->lock);
    /* Other threads may bring slabs back for ever. */
    for (size_t seen = 0; sweep_on(number, SIZE_MAX, fullness_min, &purged); seen += SWEEP_SLABS)
        fullness_min = seen < slabs ? fullness_min : FULLNESS_LEVELS;
    return purged;
}

size_t sweep_purge(size_t bytes)
{
    size_t total = 0;
    unsigned fullness = bytes == SIZE_MAX ? 1 : FULLNESS_LEVELS;
    while (fullness-- > 0)
        for (unsigned number = 0; number < shard_places() && total < bytes; number++)
            total += sweep_may(number) ? sweep_bin(number, fullness) : 0;
    return total;
}
