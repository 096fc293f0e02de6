/* Bins: frees, refills, sweeps and kept slabs at the same time. The class is one with eight blocks
 * a slab, of two pages each. */
#include "../../unit/hand.h"
#include "api/block.h"
#include "base/atomic.h"
#include "checks/checks.h"
#include "engine/model.h"
#include "map/metadata.h"
#include "slab/shard.h"
#include "slab/sweep.h"
#include "span/page_heap.h"

enum { SIZE = 8192, SLAB_BLOCKS = 8, BLOCKS_MAX = 40 };

static void *blocks[BLOCKS_MAX];

static unsigned class(void)
{
    return size_class_of(SIZE);
}

/* The block is this thread's alone: a second owner is a data race. */
static void use(void *block)
{
    CHECK(block);
    *(volatile char *)block = 1;
}

static void refill(void **taken, unsigned count)
{
    unsigned got = bin_refill(0, class(), taken, count, 1, REFILL_MAP);
    CHECK(got > 0);
    for (unsigned i = 0; i < got; i++)
        use(taken[i]);
}

static void flush(unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++)
        use(blocks[i]);
    bin_flush(0, class(), blocks + first, count);
}

static void consistent(void)
{
    bin_check_all();
    transfer_check_all();
    page_heap_check();
}

/* ---- Refill and flush -------------------------------------------------------------------------
 */

static void one_slab(void)
{
    CHECK(page_heap_init());
    shard_init(1);
    refill(blocks, SLAB_BLOCKS);
}

static void refill_2(void)
{
    void *taken[2];
    refill(taken, 2);
}

static void flush_0(void)
{
    flush(0, 2);
}

static void flush_2(void)
{
    flush(2, 2);
}

SCENARIO(slabs_refill_flush) = {
    .name = "slabs_refill_flush",
    .about = "two threads free blocks of a slab, one takes some",
    .prepare = one_slab,
    .thread = {refill_2, flush_0, flush_2},
    .finish = consistent};

static void look_at_7(void)
{
    use(blocks[7]);
    CHECK(!bin_block_is_free(blocks[7], "free"));
}

SCENARIO(slabs_look) = {
    .name = "slabs_look",
    .about = "a look into the bitmap while others change it",
    .prepare = one_slab,
    .thread = {look_at_7, flush_0, flush_2},
    .finish = consistent};

static void free_0_again(void)
{
    bin_flush(0, class(), blocks, 1);
}

SCENARIO(slabs_freed_twice) = {
    .name = "slabs_freed_twice",
    .about = "of two frees of a block one is noticed",
    .prepare = one_slab,
    .thread = {free_0_again, free_0_again},
    .aborts = true};

/* ---- The end of a slab ------------------------------------------------------------------------
 */

static void two_in_use(void)
{
    one_slab();
    flush(2, SLAB_BLOCKS - 2);
}

static void flush_first(void)
{
    flush(0, 1);
}

static void flush_second(void)
{
    flush(1, 1);
}

SCENARIO(slabs_end) = {
    .name = "slabs_end",
    .about = "the last blocks of a slab are freed while one takes from it",
    .prepare = two_in_use,
    .thread = {flush_first, flush_second, refill_2},
    .finish = consistent};

static void refill_other(void)
{
    void *taken;
    CHECK(bin_refill(0, size_class_of(1024), &taken, 1, 1, REFILL_MAP) == 1);
    use(taken);
}

/* Slabs of short blocks, whose first pages are populated if the newest slab was written to. */
static void one_full_slab_of_other(void)
{
    void *taken[UNIT_SIZE / 1024];
    one_slab();
    unsigned got = bin_refill(0, size_class_of(1024), taken, ARRAY_LENGTH(taken), 1, REFILL_MAP);
    CHECK(got == ARRAY_LENGTH(taken));
}

SCENARIO(slabs_populate) = {
    .name = "slabs_populate",
    .about = "two threads make slabs of a bin, and look at its newest one",
    .prepare = one_full_slab_of_other,
    .thread = {refill_other, refill_other},
    .finish = consistent};

static void look_at_slab(struct bin *bin, struct slab *slab)
{
    CHECK(bin == bin_of(0, class()) && slab->blocks == SLAB_BLOCKS);
}

static void walk(void)
{
    struct bin *bin = bin_of(0, class());
    lock_acquire(&bin->lock);
    bin_for_each_slab(0, class(), look_at_slab);
    lock_release(&bin->lock);
}

SCENARIO(slabs_walk) = {
    .name = "slabs_walk",
    .about = "the slabs of a bin are walked while another bin gets one",
    .prepare = one_slab,
    .thread = {walk, refill_other},
    .finish = consistent};

SCENARIO(slabs_unit_again) = {
    .name = "slabs_unit_again",
    .about = "the unit of a slab that ends serves another class",
    .prepare = two_in_use,
    .thread = {flush_0, refill_other, refill_2},
    .finish = consistent};

/* Of the free units two are odd, whose records lie in the same piece, which nobody has made. */
static void two_odd_units(void)
{
    struct unit_run taken[3];
    one_slab();
    for (unsigned i = 0; i < ARRAY_LENGTH(taken); i++)
        CHECK(page_heap_take(0, 1, 1, true, &taken[i]) && taken[i].run.first == i + 1);
    page_heap_put(taken[0].superslab, taken[0].run, 0);
    page_heap_put(taken[2].superslab, taken[2].run, 0);
    /* Others have used what it is made of. */
    void *first = metadata_alloc(superslab_records_size(0));
    void *second = metadata_alloc(superslab_records_size(0));
    metadata_free(first, superslab_records_size(0));
    metadata_free(second, superslab_records_size(0));
}

static void refill_all(void)
{
    void *taken[SLAB_BLOCKS];
    refill(taken, SLAB_BLOCKS);
    bin_flush(0, class(), taken, 1);
}

SCENARIO(slabs_records) = {
    .name = "slabs_records",
    .about = "two threads make slabs, and what their records lie in",
    .prepare = two_odd_units,
    .thread = {refill_all, refill_all},
    .finish = consistent};

/* ---- Empty slabs that are kept ----------------------------------------------------------------
 */

/* The bin has missed a slab: it keeps the next one that runs empty. */
static void keeps_one(void)
{
    one_slab();
    flush(0, SLAB_BLOCKS);
    refill(blocks, SLAB_BLOCKS);
    CHECK(bin_of(0, class())->keep == 1);
}

static void one_is_kept(void)
{
    keeps_one();
    flush(0, SLAB_BLOCKS);
    CHECK(bin_of(0, class())->kept == 1);
}

static void one_is_about_to_be_kept(void)
{
    keeps_one();
    flush(2, SLAB_BLOCKS - 2);
}

static void make_room(void)
{
    sweep_empties();
}

static void two_ticks_of_sweep(void)
{
    look_at_bins(false);
    look_at_bins(false);
    step_in_bins();
}

SCENARIO(slabs_keep) = {
    .name = "slabs_keep",
    .about = "an empty slab is wanted again, given to others and given up by ticks",
    .prepare = one_is_kept,
    .thread = {refill_2, make_room, two_ticks_of_sweep},
    .finish = consistent};

SCENARIO(slabs_keep_end) = {
    .name = "slabs_keep_end",
    .about = "a slab that is to be kept runs empty while others take it and want it",
    .prepare = one_is_about_to_be_kept,
    .thread = {flush_0, refill_2, make_room},
    .finish = consistent};

/* ---- Purge ------------------------------------------------------------------------------------
 */

static void purge_bins(void)
{
    sweep_purge(SIZE_MAX);
}

SCENARIO(slabs_purge_refill) = {
    .name = "slabs_purge_refill",
    .about = "pages are purged while their slab's blocks are taken",
    .prepare = two_in_use,
    .thread = {purge_bins, refill_2, flush_first},
    .finish = consistent};

SCENARIO(slabs_purge_end) = {
    .name = "slabs_purge_end",
    .about = "pages are purged while the slab becomes empty",
    .prepare = two_in_use,
    .thread = {purge_bins, flush_first, flush_second},
    .finish = consistent};

SCENARIO(slabs_purge_twice) = {
    .name = "slabs_purge_twice",
    .about = "two threads purge the same slab, one takes from it",
    .prepare = two_in_use,
    .thread = {purge_bins, purge_bins, refill_2},
    .finish = consistent};

/* ---- The wide class map -----------------------------------------------------------------------
 */

/* Slabs of long blocks are in no class map: this one holds the longest short ones. */
enum { SHORT_SLAB_BLOCKS = UNIT_SIZE / SHORT_MAX };

/* Two of its blocks are in use, and only the window knows it. */
static void two_left_in_window(void)
{
    CHECK(page_heap_init());
    shard_init(1);
    unsigned class = size_class_of(SHORT_MAX);
    CHECK(bin_refill(0, class, blocks, SHORT_SLAB_BLOCKS, 1, REFILL_MAP) == SHORT_SLAB_BLOCKS);
    bin_flush(0, class, blocks + 1, SHORT_SLAB_BLOCKS - 2);
    CHECK(class_map_newest() == &class_map);
    CHECK(class_map_get(blocks[0]) == class);
}

static void grow_far_away(void)
{
    CHECK(class_map_prepare((void *)((uintptr_t)1 << 45)));
    CHECK(class_map_newest() == &wide_class_map);
}

/* What free does with a block of a slab that the wide map does not know. */
static void enter_and_free(unsigned index)
{
    if (class_map_newest() == &wide_class_map) {
        slab_publish(slab_lookup(blocks[index]));
        CHECK(class_map_get(blocks[index]) == size_class_of(SHORT_MAX));
    }
    use(blocks[index]);
    bin_flush(0, size_class_of(SHORT_MAX), blocks + index, 1);
}

/* No map may say of units that nobody made a slab of that they are one. */
static void use_units_again(void)
{
    sweep_purge(SIZE_MAX);
    struct unit_run taken;
    CHECK(page_heap_take(0, 1, 1, true, &taken));
    char *start = superslab_address(taken.superslab, taken.run.first);
    size_t unit = ((uintptr_t)start - class_map.base) >> UNIT_SHIFT;
    CHECK(class_map_get(start) == CLASS_NONE);
    CHECK(ATOMIC_LOAD_RELAXED(&class_map.classes[unit]) == CLASS_NONE);
}

static void enter_first(void)
{
    enter_and_free(0);
    use_units_again();
}

static void grow_and_enter_last(void)
{
    grow_far_away();
    enter_and_free(SHORT_SLAB_BLOCKS - 1);
    use_units_again();
}

SCENARIO(slabs_in_wide_map) = {
    .name = "slabs_in_wide_map",
    .about = "the wide class map is made, and a slab entered, while the slab goes away",
    .prepare = two_left_in_window,
    .thread = {enter_first, grow_and_enter_last},
    .finish = consistent,
    .preemptions_max = 4};

static const uint8_t *wide_maps[2]; /* as two threads found them */

static void make_first(void)
{
    grow_far_away();
    wide_maps[0] = ATOMIC_LOAD_RELAXED(&wide_class_map.classes);
}

static void make_second(void)
{
    grow_far_away();
    wide_maps[1] = ATOMIC_LOAD_RELAXED(&wide_class_map.classes);
}

static void one_was_made(void)
{
    CHECK(wide_maps[0] == wide_maps[1]);
    consistent();
}

SCENARIO(slabs_wide_map_twice) = {
    .name = "slabs_wide_map_twice",
    .about = "two threads make the wide class map",
    .prepare = two_left_in_window,
    .thread = {make_first, make_second},
    .finish = one_was_made};
