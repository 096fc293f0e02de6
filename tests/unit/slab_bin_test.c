/* slab/bin: refill and flush against a list of what is out; the order of refills; empty slabs
 * returned; blocks of other shards; purging inside slabs (behaviours 22, 24, 35). */
#include "unit.h"

#include <pthread.h>

#include "base/policy.h"
#include "base/pressure.h"
#include "checks/checks.h"
#include "hand.h"
#include "os/os.h"
#include "slab/shard.h"
#include "slab/sweep.h"
#include "span/page_heap.h"

enum { BATCH = 64, HELD_MAX = 20000, STEPS = 3000, THREADS = 3, SHARDS = 3, SCATTERED_SLABS = 4 };

static void *held[HELD_MAX];
static unsigned held_count;

/* What a block carries while it is out: its address, at both ends. */
static void stamp(void *block, size_t size)
{
    *(void **)block = block;
    *(void **)((char *)block + size - sizeof(void *)) = block;
}

static void check_stamp(void *block, size_t size)
{
    CHECK(*(void **)block == block);
    CHECK(*(void **)((char *)block + size - sizeof(void *)) == block);
}

static unsigned level_of(const struct slab *slab)
{
    unsigned quarters = slab->free_blocks * 4u, blocks = slab->blocks;
    return quarters <= blocks ? 0 : quarters <= 2 * blocks ? 1 : quarters <= 3 * blocks ? 2 : 3;
}

/* Before a refill: the fullest level that any slab with free blocks is on; afterwards the first
 * block must come from such a slab. */
static unsigned best_level(struct bin *bin)
{
    for (unsigned level = 0; level <= FULLNESS_EMPTY; level++)
        if (bin->slabs[level].first)
            return level;
    return FULLNESS_EMPTY + 1;
}

static unsigned lowest_free(const struct slab *slab)
{
    return bitmap_find(slab->free, 0, slab->blocks, true);
}

/* Blocks of one slab come in falling order, all below what is left free in it. */
static void check_order(void *const *blocks, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct slab *slab = slab_lookup(blocks[i]);
        unsigned index = slab_index(slab, blocks[i], "test");
        CHECK(index < lowest_free(slab));
        if (i && slab_lookup(blocks[i - 1]) == slab)
            CHECK(slab_index(slab, blocks[i - 1], "test") > index);
    }
}

static void refill(unsigned shard, unsigned class, unsigned count)
{
    void **blocks = held + held_count;
    struct bin *bin = bin_of(shard, class);
    unsigned level = best_level(bin), slabs = bin->slab_count;
    struct slab *expected = level <= FULLNESS_EMPTY
                                ? CONTAINER_OF(bin->slabs[level].first, struct slab, by_fullness)
                                : NULL;
    unsigned got = bin_refill(shard, class, blocks, count, 1, REFILL_MAP);
    CHECK(got > 0 && got <= count);
    CHECK(!expected || slab_lookup(blocks[got - 1]) == expected);
    /* A slab is made only when there is none with a free block. */
    CHECK(bin->slab_count == slabs + (level > FULLNESS_EMPTY));
    check_order(blocks, got);
    for (unsigned i = 0; i < got; i++) {
        const struct slab *slab = slab_lookup(blocks[i]);
        CHECK(slab->size_class == class && slab->shard == shard);
        CHECK(class_map_get(blocks[i]) == (size_class_is_long(class) ? CLASS_NONE : class));
        stamp(blocks[i], size_classes[class].size);
    }
    held_count += got;
}

static void shuffle(uint64_t *random)
{
    for (unsigned i = held_count; i > 1; i--) {
        unsigned other = unit_below(random, i);
        void *block = held[i - 1];
        held[i - 1] = held[other];
        held[other] = block;
    }
}

static void flush(unsigned shard, unsigned class, unsigned count)
{
    count = (unsigned)size_min(count, held_count);
    if (!count)
        return;
    held_count -= count;
    for (unsigned i = 0; i < count; i++)
        check_stamp(held[held_count + i], size_classes[class].size);
    bin_flush(shard, class, held + held_count, count);
}

static unsigned live_blocks(unsigned class)
{
    unsigned live = 0;
    for (unsigned i = 0; i < held_count; i++)
        live += slab_lookup(held[i])->size_class == class;
    return live;
}

/* Blocks out = blocks of all slabs - free ones, seen through the slabs of the held blocks. */
static void check(unsigned class)
{
    bin_check_all();
    CHECK(live_blocks(class) == held_count);
    for (unsigned i = 0; i < held_count; i += 97) {
        const struct slab *slab = slab_lookup(held[i]);
        CHECK(!bin_block_is_free(held[i], "test"));
        CHECK(!slab->free_blocks || slab->fullness == level_of(slab));
    }
}

static void run_class(unsigned class)
{
    uint64_t random = class * 7u;
    unsigned shards = shard_count();
    size_t used = page_heap_stats().used_pages;
    for (int step = 0; step < STEPS; step++) {
        bool filling = step / 200 % 2 == 0;
        if (step % 20 == 0)
            shuffle(&random);
        if (unit_below(&random, 10) < (filling ? 7u : 3u) && held_count + BATCH <= HELD_MAX)
            refill(unit_below(&random, shards), class, 1 + unit_below(&random, BATCH));
        else
            flush(unit_below(&random, shards), class, 1 + unit_below(&random, BATCH));
        if (unit_below(&random, 100) == 0)
            sweep_purge(SIZE_MAX);
        if (step % 10 == 0)
            check(class);
    }
    shuffle(&random);
    while (held_count)
        flush(0, class, BATCH);
    sweep_purge(SIZE_MAX);
    for (unsigned shard = 0; shard < shards; shard++)
        CHECK(bin_of(shard, class)->slab_count == 0);
    CHECK(page_heap_stats().used_pages == used);
    page_heap_check();
}

static void random_steps_agree_with_the_model(void **state)
{
    (void)state;
    static const size_t sizes[] = {16, 48, 256, 1024, 3328, 9216, 32768};
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++)
        run_class(size_class_of(sizes[i]));
}

static void lowest_addresses_of_the_fullest_slab_first(void **state)
{
    (void)state;
    unsigned class = size_class_of(1024); /* 64 blocks a slab */
    for (unsigned i = 0; i < 3; i++)
        refill(0, class, 64);
    assert_int_equal(held_count, 192);
    void *sparse[60], *dense[4];
    /* Of the first slab the last 60 blocks are freed, of the second 4. */
    for (unsigned i = 0; i < 60; i++)
        sparse[i] = held[i];
    for (unsigned i = 0; i < 4; i++)
        dense[i] = held[64 + 10 * i];
    bin_flush(0, class, sparse, 60);
    bin_flush(0, class, dense, 4);
    assert_int_equal(level_of(slab_lookup(sparse[0])), 3);
    assert_int_equal(level_of(slab_lookup(dense[0])), 0);
    void *got[6];
    assert_int_equal(bin_refill(0, class, got, 6, 1, REFILL_MAP), 6);
    for (unsigned i = 0; i < 4; i++)
        assert_ptr_equal(got[2 + i], held[64 + 10 * i]);
    assert_ptr_equal(got[1], held[59]);
    assert_ptr_equal(got[0], held[58]);
    bin_flush(0, class, got, 6);
    bin_flush(0, class, held + 60, 4);
    for (unsigned i = 64; i < 192; i++)
        if (i % 10 != 4 || i > 94)
            bin_flush(0, class, &held[i], 1);
    held_count = 0;
    bin_check_all();
    sweep_purge(SIZE_MAX);
    assert_int_equal(bin_of(0, class)->slab_count, 0);
}

static void used_blocks_can_be_had_alone(void **state)
{
    (void)state;
    unsigned class = size_class_of(1024);
    void *back[4];
    refill(0, class, 10);
    const struct slab *slab = slab_lookup(held[0]);
    assert_int_equal(slab_used_blocks(slab), 0);
    assert_int_equal(bin_refill(0, class, held + held_count, 4, 1, REFILL_USED), 0);
    for (unsigned i = 0; i < 3; i++)
        back[i] = held[3 * i];
    bin_flush(0, class, back, 3);
    assert_int_equal(slab_used_blocks(slab), 3);
    assert_int_equal(bin_refill(0, class, back + 1, 2, 1, REFILL_USED), 2);
    void *last[2];
    assert_int_equal(bin_refill(0, class, last, 2, 1, REFILL_USED), 1);
    back[0] = last[0];
    for (unsigned i = 0; i < 3; i++)
        assert_ptr_equal(back[i], held[3 * i]);
    assert_int_equal(bin_refill(0, class, held + held_count, 4, 1, REFILL_USED), 0);
    assert_int_equal(bin_refill(0, class, held + held_count, 1, 1, REFILL_FRESH), 1);
    assert_ptr_equal(held[held_count], (char *)held[0] + 1024);
    stamp(held[held_count++], 1024);
    while (held_count)
        flush(0, class, BATCH);
    sweep_purge(SIZE_MAX);
    assert_int_equal(bin_of(0, class)->slab_count, 0);
}

/* Hands out a whole slab of the class; returns how many of its pages had memory before, or -1 when
 * the slab was made of pages that were in use before. */
static int resident_of_next(unsigned class, bool written)
{
    int pages = 0;
    unsigned count = size_classes[class].blocks;
    assert_int_equal(bin_refill(0, class, held + held_count, count, 1, REFILL_MAP), count);
    const struct slab *slab = slab_lookup(held[held_count]);
    for (unsigned i = 0; i < UNIT_PAGES; i++)
        pages += unit_is_resident(slab->base + i * PAGE_SIZE);
    for (unsigned i = 0; i < count; i++, held_count++)
        if (written)
            stamp(held[held_count], size_classes[class].size);
    return slab->clean ? pages : -1;
}

/* The more slabs a class has, the more of its next one has memory at once. */
static void slabs_of_growing_classes_are_populated(void **state)
{
    (void)state;
    void *probe = os_map(os_page_size(), os_page_size(), NULL);
    os_populate(probe, os_page_size());
    bool supported = unit_is_resident(probe);
    os_unmap(probe, os_page_size());
    /* Linux before 5.14 refuses it, an emulator may do nothing. */
    if (!supported || sysconf(_SC_PAGESIZE) != PAGE_SIZE)
        skip();
    page_heap_purge(SIZE_MAX);
    unsigned class = size_class_of(PAGE_SIZE / 2), long_class = size_class_of(PAGE_SIZE);
    for (int slabs = 0; slabs < 20; slabs++)
        assert_int_equal(resident_of_next(class, true), slabs < UNIT_PAGES ? slabs : UNIT_PAGES);
    /* What is as long as a page may be used in part only. */
    unsigned held_before = held_count;
    for (int slabs = 0; slabs < 3; slabs++)
        assert_int_equal(resident_of_next(long_class, true), 0);
    flush(0, long_class, held_count - held_before);
    while (held_count)
        flush(0, class, BATCH);
}

/* Blocks that nobody writes to cost no memory, however many they are. */
static void untouched_slabs_are_not_populated(void **state)
{
    (void)state;
    enum { SLABS = 20 };
    unsigned class = size_class_of(PAGE_SIZE / 2);
    page_heap_purge(SIZE_MAX);
    for (int slabs = 0; slabs < SLABS; slabs++)
        assert_int_equal(resident_of_next(class, false), 0);
    for (unsigned i = 0; i < held_count; i++)
        stamp(held[i], size_classes[class].size);
    while (held_count)
        flush(0, class, (unsigned)size_min(held_count, BATCH));
}

/* What was populated and never handed out goes back with the rest. */
static void populated_pages_are_purged(void **state)
{
    (void)state;
    unsigned class = size_class_of(PAGE_SIZE / 2);
    page_heap_purge(SIZE_MAX);
    for (unsigned slabs = 0; slabs < UNIT_PAGES; slabs++)
        resident_of_next(class, true);
    refill(0, class, 1);
    const struct slab *slab = slab_lookup(held[held_count - 1]);
    sweep_purge(SIZE_MAX);
    assert_true(unit_is_resident(slab->base));
    for (size_t page = os_page_size(); page < UNIT_SIZE; page += os_page_size())
        assert_false(unit_is_resident(slab->base + page));
    slab_check(slab);
    while (held_count)
        flush(0, class, (unsigned)size_min(held_count, BATCH));
}

/* Blocks freed by another shard's thread go back to their own bin, and are counted. */
static void remote_blocks_go_home(void **state)
{
    (void)state;
    unsigned class = size_class_of(128);
    refill(0, class, 40);
    refill(1, class, 40);
    uint64_t remote[2] = {bin_of(0, class)->remote_blocks, bin_of(1, class)->remote_blocks};
    uint64_t random = 9;
    shuffle(&random);
    unsigned of_shard[2] = {0, 0};
    for (unsigned i = held_count - 50; i < held_count; i++)
        of_shard[slab_lookup(held[i])->shard]++;
    flush(1, class, 50);
    assert_int_equal(bin_of(0, class)->remote_blocks - remote[0], of_shard[0]);
    assert_int_equal(bin_of(1, class)->remote_blocks - remote[1], 0);
    of_shard[0] = of_shard[1] = 0;
    for (unsigned i = 0; i < held_count; i++)
        of_shard[slab_lookup(held[i])->shard]++;
    unsigned rest = of_shard[1];
    flush(0, class, held_count);
    sweep_purge(SIZE_MAX);
    assert_int_equal(bin_of(1, class)->remote_blocks - remote[1], rest);
    assert_int_equal(bin_of(0, class)->slab_count + bin_of(1, class)->slab_count, 0);
}

/* Free pages inside slabs are given back; what is live keeps every byte. */
static void purging_inside_slabs_keeps_live_blocks(void **state)
{
    (void)state;
    static const size_t sizes[] = {16, 80, 512, 1152, 5120, 12288, 32768};
    for (size_t s = 0; s < ARRAY_LENGTH(sizes); s++) {
        unsigned class = size_class_of(sizes[s]);
        size_t size = size_classes[class].size, amount = size < 1024 ? 256 * KIB : MIB;
        while (held_count + 64 <= HELD_MAX && held_count * size < amount)
            refill(0, class, 64);
        for (unsigned i = 0; i < held_count; i++)
            memset(held[i], (int)(1 + i % 200), size);
        /* Leave islands: one block in every 40 KiB or so. */
        unsigned island = (unsigned)(40 * KIB / size) + 1, kept = 0;
        for (unsigned i = 0; i < held_count; i++) {
            if (i % island == 0)
                held[kept++] = held[i];
            else
                bin_flush(0, class, &held[i], 1);
        }
        size_t purged = sweep_purge(SIZE_MAX);
        /* Pages as large as a unit leave nothing to purge inside of a slab. */
        assert_true(purged >= amount / 4 || os_page_size() >= UNIT_SIZE);
        assert_int_equal(sweep_purge(SIZE_MAX), 0);
        bin_check_all();
        for (unsigned i = 0; i < kept; i++)
            CHECK(unit_all_bytes(held[i], size, (unsigned char)(1 + i * island % 200)));
        /* What was purged can be handed out again, and then be purged again. */
        unsigned all = held_count;
        for (held_count = kept; held_count + 16 < all;) {
            unsigned got = bin_refill(0, class, held + held_count, 16, 1, REFILL_MAP);
            for (unsigned i = 0; i < got; i++)
                memset(held[held_count + i], 0xee, size);
            held_count += got;
        }
        for (unsigned i = 0; i < kept; i++)
            CHECK(unit_all_bytes(held[i], size, (unsigned char)(1 + i * island % 200)));
        for (unsigned i = 0; i < held_count; i++)
            bin_flush(0, class, &held[i], 1);
        held_count = 0;
        sweep_purge(SIZE_MAX);
        bin_check_all();
        assert_int_equal(bin_of(0, class)->slab_count, 0);
    }
}

/* Two ticks after most blocks of a peak were freed, the pages that nobody used in between are given
 * back, a step at a time; those that were used in between are not. */
static void ticks_purge_what_lay_unused(void **state)
{
    (void)state;
    unsigned class = size_class_of(2048);
    struct bin *bin = bin_of(0, class);
    policy.retain_percent = 25;
    while (held_count + 64 <= HELD_MAX)
        refill(0, class, 64);
    pressure_begin_round();
    unsigned kept = 0, freed = 0;
    for (unsigned i = 0; i < held_count; i++) {
        if (i % 20 == 0) {
            held[kept++] = held[i];
        } else {
            bin_flush(0, class, &held[i], 1);
            freed++;
        }
    }
    held_count = kept;
    assert_int_equal(pressure_is_armed(), freed * (size_t)2048 > 256 * KIB);
    look_at_bins(false);
    assert_false(step_in_bins());
    uint64_t purged = pressure_total();
    look_at_bins(false);
    assert_true(bin->sweeping);
    while (step_in_bins()) {
    }
    assert_false(bin->sweeping);
    purged = pressure_total() - purged;
    assert_true(purged >= freed * (size_t)2048 / 2 || os_page_size() >= UNIT_SIZE);
    bin_check_all();
    /* The same memory is not looked at again. */
    look_at_bins(false);
    assert_false(bin->sweeping);
    for (unsigned i = 0; i < held_count; i++)
        check_stamp(held[i], 2048);
    /* All of it is taken and freed again: at the next tick it was not unused. */
    for (unsigned i = 0; i < freed / 16; i++)
        refill(0, class, 16);
    look_at_bins(false);
    for (unsigned i = 0; i < freed / 16; i++)
        flush(0, class, 16);
    look_at_bins(false);
    assert_false(bin->sweeping);
    look_at_bins(true);
    assert_int_equal(bin->sweeping, freed / 16 * 16 * (size_t)2048 > 256 * KIB);
    while (held_count)
        flush(0, class, BATCH);
    bin_check_all();
    sweep_purge(SIZE_MAX);
    assert_int_equal(bin->slab_count, 0);
}

static unsigned swept_slabs(const struct bin *bin)
{
    unsigned count = 0;
    for (const struct list_node *node = bin->swept.first; node; node = node->next)
        count++;
    return count;
}

/* Of a slab that is in use: what nobody has taken yet, and what was purged. */
static void clean_pages_are_counted(void **state)
{
    (void)state;
    enum { LONG = 64 * 1024 }; /* of whole pages everywhere */
    unsigned class = size_class_of(LONG);
    sweep_purge(SIZE_MAX);
    page_heap_purge(SIZE_MAX);
    size_t before = slab_clean_bytes(), slab = size_classes[class].units * UNIT_SIZE;
    assert_int_equal(bin_refill(0, class, held, 1, 1, REFILL_MAP), 1);
    assert_int_equal(slab_clean_bytes(), before + slab - LONG);
    assert_int_equal(bin_refill(0, class, held + 1, 2, 1, REFILL_USED), 0);
    assert_int_equal(bin_refill(0, class, held + 1, 2, 1, REFILL_FRESH), 2);
    assert_int_equal(slab_clean_bytes(), before + slab - 3 * LONG);
    bin_flush(0, class, held + 1, 2);
    assert_int_equal(slab_clean_bytes(), before + slab - 3 * LONG);
    assert_int_equal(sweep_purge(SIZE_MAX), 2 * LONG);
    assert_int_equal(slab_clean_bytes(), before + slab - LONG);
    assert_int_equal(sweep_purge(SIZE_MAX), 0);
    bin_flush(0, class, held, 1);
    sweep_purge(SIZE_MAX);
    assert_int_equal(slab_clean_bytes(), before);
}

/* Those that were looked at go back to their lists by so many at a time, since others wait. */
static void a_sweep_ends_in_steps(void **state)
{
    (void)state;
    enum { SLABS = 1200, MOST = 512, LONG = 16 * 1024 };
    unsigned class = size_class_of(LONG), blocks = size_classes[class].blocks;
    assert_true(SLABS * blocks <= HELD_MAX);
    struct bin *bin = bin_of(0, class);
    /* Each is half empty, and no page of it is left to be purged. */
    for (unsigned i = 0; i < SLABS * blocks; i++)
        assert_int_equal(bin_refill(0, class, &held[i], 1, 1, REFILL_MAP), 1);
    for (unsigned i = 0; i < SLABS * blocks; i++) {
        slab_add_clean(slab_lookup(held[i]), UINT64_MAX);
        if (i % blocks)
            bin_flush(0, class, &held[i], 1);
    }
    assert_int_equal(bin->slab_count, SLABS);
    look_at_bins(true);
    assert_true(bin->sweeping);
    unsigned before = 0, most = 0, now;
    while (step_in_bins()) {
        now = swept_slabs(bin);
        assert_true(now + MOST >= before);
        most = now > most ? now : most;
        before = now;
    }
    assert_true(most > MOST);
    assert_int_equal(before, 0);
    assert_int_equal(bin->sweeping, SWEEP_NONE);
    bin_check_all();
    for (unsigned i = 0; i < SLABS * blocks; i += blocks)
        bin_flush(0, class, &held[i], 1);
    sweep_purge(SIZE_MAX);
    assert_int_equal(bin->slab_count, 0);
}

/* A burst of so many whole slabs comes and goes; returns how many slabs the page heap made for it.
 */
static unsigned burst(unsigned size_class, unsigned slabs)
{
    unsigned before = bin_of(0, size_class)->kept;
    for (unsigned i = 0; i < slabs; i++)
        refill(0, size_class, size_classes[size_class].blocks);
    unsigned all = bin_of(0, size_class)->slab_count;
    CHECK(all == slabs);
    while (held_count)
        flush(0, size_class, BATCH);
    bin_check_all();
    return all - before;
}

/* Empty slabs stay when a burst has come back, as many as it needs, and go when it does not. */
static void slabs_are_kept_for_bursts(void **state)
{
    (void)state;
    enum { SLABS = 12, FEWER = 5 };
    unsigned size_class = size_class_of(448);
    struct bin *bin = bin_of(0, size_class);
    assert_int_equal(burst(size_class, SLABS), SLABS);
    assert_int_equal(bin->slab_count, 0);
    assert_int_equal(burst(size_class, SLABS), SLABS);
    assert_int_equal(bin->kept, SLABS);
    assert_int_equal(burst(size_class, SLABS), 0);
    /* A smaller one leaves some untouched, which go with the second tick. */
    look_at_bins(false);
    assert_int_equal(bin->kept, SLABS);
    for (unsigned i = 0; i < FEWER; i++)
        refill(0, size_class, size_classes[size_class].blocks);
    while (held_count)
        flush(0, size_class, BATCH);
    look_at_bins(false);
    while (step_in_bins())
        continue;
    assert_int_equal(bin->kept, FEWER);
    bin_check_all();
    /* Nothing happens any more. */
    look_at_bins(false);
    while (step_in_bins())
        continue;
    assert_int_equal(bin->slab_count, 0);
    assert_int_equal(bin->keep, 0);
    assert_int_equal(burst(size_class, FEWER), FEWER);
    assert_int_equal(bin->slab_count, 0);
    look_at_bins(false);
}

/* 32 times the longest magazine, and no more. */
static void kept_slabs_are_bounded(void **state)
{
    (void)state;
    enum { SLABS = 40, MOST = 32 };
    unsigned size_class = size_class_of(4096);
    struct bin *bin = bin_of(0, size_class);
    policy.magazine_kib = 64;
    for (int round = 0; round < 3; round++)
        burst(size_class, SLABS);
    assert_int_equal(bin->kept, MOST);
    sweep_purge(SIZE_MAX);
    assert_int_equal(bin->slab_count, 0);
}

/* Whoever needs memory gets the empty slabs of others; the next burst keeps them again. */
static void kept_slabs_make_room(void **state)
{
    (void)state;
    enum { SLABS = 6 };
    unsigned size_class = size_class_of(576);
    struct bin *bin = bin_of(0, size_class);
    for (int round = 0; round < 2; round++)
        burst(size_class, SLABS);
    assert_int_equal(bin->kept, SLABS);
    size_t used = page_heap_stats().used_pages;
    assert_true(sweep_empties());
    assert_int_equal(bin->slab_count, 0);
    assert_int_equal(page_heap_stats().used_pages, used - SLABS * UNIT_PAGES);
    assert_false(sweep_empties());
    assert_int_equal(burst(size_class, SLABS), SLABS);
    assert_int_equal(bin->kept, SLABS);
    sweep_purge(SIZE_MAX);
}

static void *churn(void *argument)
{
    unsigned shard = (unsigned)(uintptr_t)argument % shard_count(), class = size_class_of(640);
    uint64_t random = (uintptr_t)argument + 100;
    void *mine[256];
    unsigned count = 0;
    for (int step = 0; step < 20000; step++) {
        unsigned batch = 1 + unit_below(&random, 32);
        if (count + batch <= 256 && unit_below(&random, 2)) {
            unsigned got = bin_refill(shard, class, mine + count, batch, 1, REFILL_MAP);
            CHECK(got);
            for (unsigned i = count; i < count + got; i++)
                stamp(mine[i], 640);
            count += got;
        } else if (count >= batch) {
            count -= batch;
            for (unsigned i = count; i < count + batch; i++)
                check_stamp(mine[i], 640);
            bin_flush(unit_below(&random, shard_count()), class, mine + count, batch);
        }
    }
    if (count)
        bin_flush(shard, class, mine, count);
    return NULL;
}

static bool stop_purging; /* atomic */

/* What is being purged must not be handed out: its stamps would be lost. */
static void *purge_all_the_time(void *argument)
{
    while (!__atomic_load_n(&stop_purging, __ATOMIC_RELAXED)) {
        sweep_purge(SIZE_MAX);
        look_at_bins(true);
        look_at_bins(false);
        step_in_bins();
    }
    return argument;
}

static void threads_share_bins(void **state)
{
    (void)state;
    pthread_t thread[THREADS], purger;
    stop_purging = false;
    assert_int_equal(pthread_create(&purger, NULL, purge_all_the_time, NULL), 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, churn, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    __atomic_store_n(&stop_purging, true, __ATOMIC_RELAXED);
    pthread_join(purger, NULL);
    bin_check_all();
    page_heap_check();
    sweep_purge(SIZE_MAX);
    for (unsigned shard = 0; shard < shard_count(); shard++)
        assert_int_equal(bin_of(shard, size_class_of(640))->slab_count, 0);
}

static void flush_twice(void *block)
{
    bin_flush(0, size_class_of(128), &block, 1);
    bin_flush(0, size_class_of(128), &block, 1);
}

static void flush_inside(void *block)
{
    void *inside = (char *)block + 32;
    bin_flush(0, size_class_of(128), &inside, 1);
}

static void misuse_is_named(void **state)
{
    (void)state;
    char line[200];
    void *blocks[2];
    unsigned class = size_class_of(128);
    assert_int_equal(bin_refill(0, class, blocks, 2, 1, REFILL_MAP), 2);
    snprintf(line, sizeof line, "hakmem: free(): double free of %p", blocks[1]);
    unit_expect_abort(flush_twice, blocks[1], line);
    snprintf(
        line, sizeof line, "hakmem: free(): invalid pointer %p: inside a block of 128 bytes at %p",
        (void *)((char *)blocks[1] + 32), blocks[1]);
    unit_expect_abort(flush_inside, blocks[1], line);
    bin_flush(0, class, &blocks[0], 1);
    assert_true(bin_block_is_free(blocks[0], "test"));
    assert_false(bin_block_is_free(blocks[1], "test"));
    assert_false(bin_block_is_free(line, "test"));
    bin_flush(0, class, &blocks[1], 1);
}

/* Frees the blocks of that number in each slab. */
static void flush_scattered(unsigned number, unsigned in_slab, void *again)
{
    void *batch[SCATTERED_SLABS + 1] = {[SCATTERED_SLABS] = again};
    for (unsigned slab = 0; slab < SCATTERED_SLABS; slab++)
        batch[slab] = held[slab * in_slab + number];
    bin_flush(0, size_class_of(128), batch, SCATTERED_SLABS + (again != NULL));
}

static void flush_scattered_twice(void *block)
{
    flush_scattered(1, 512, block);
}

static void scattered_blocks_come_home(void **state)
{
    (void)state;
    unsigned class = size_class_of(128), in_slab = size_classes[class].blocks;
    char line[200];
    for (unsigned slab = 0; slab < SCATTERED_SLABS; slab++)
        assert_int_equal(
            bin_refill(0, class, held + slab * in_slab, in_slab, 1, REFILL_MAP), in_slab);
    snprintf(line, sizeof line, "hakmem: free(): double free of %p", held[0]);
    for (unsigned i = 0; i + 1 < in_slab; i++) {
        flush_scattered(i, in_slab, NULL);
        for (unsigned slab = 0; slab < SCATTERED_SLABS; slab++)
            assert_true(bin_block_is_free(held[slab * in_slab + i], "test"));
        if (i == 0)
            unit_expect_abort(flush_scattered_twice, held[0], line);
        bin_check_all();
    }
    flush_scattered(in_slab - 1, in_slab, NULL);
    assert_int_equal(bin_of(0, class)->slab_count, bin_of(0, class)->kept);
}

/* Whoever was about to put its first slab into the bin is gone. */
static void a_repaired_bin_knows_its_slabs(void **state)
{
    (void)state;
    unsigned class = size_class_of(700);
    struct bin *bin = bin_of(0, class);
    void *block;
    assert_int_equal(bin_refill(0, class, &block, 1, 1, REFILL_MAP), 1);
    bin->keep = 1;
    bin_flush(0, class, &block, 1);
    assert_int_equal(bin->kept, 1);
    bin_repair(class);
    assert_int_equal(bin->kept, 1);
    assert_int_equal(bin_listed_blocks(bin), 0);
    bin_check_all();
    sweep_purge(SIZE_MAX);
    assert_int_equal(bin->slab_count, 0);
}

/* As many as 64 GiB of the least ones, and more. */
static void free_blocks_of_a_large_machine_are_counted(void **state)
{
    (void)state;
    struct slab slab = {.blocks = 4096};
    struct bin bin = {.free_blocks = (uint64_t)1 << 32, .slab_count = 1 << 20};
    assert_true(bin_listed_blocks(&bin) == (uint64_t)1 << 32);
    assert_true(bin_has_excess(&bin, size_class_of(16)));
    list_push(&bin.slabs[FULLNESS_EMPTY], &slab.by_fullness);
    bin.kept = 1 << 20;
    assert_int_equal(bin_listed_blocks(&bin), 0);
    bin_miss(&bin, UINT32_MAX);
    assert_int_equal(bin.missed, UINT16_MAX);
}

static void change_shards(void *argument)
{
    (void)argument;
    shard_init(0);
    CHECK(shard_count() == SHARDS && shard_of_heap(0) == 0 && shard_of_heap(77) == 0);
    shard_init(2);
    CHECK(shard_of_heap(0) != shard_of_heap(1) && shard_of_heap(2) == shard_of_heap(0));
    shard_init(1000);
    CHECK(shard_count() == SHARDS);
    for (unsigned i = 0; i < 1000; i++)
        CHECK(shard_of_heap(i) < SHARD_MAX && shard_count() > shard_of_heap(i));
    CHECK(shard_count() == SHARD_MAX);
    /* Slabs of the shards that were are still looked after. */
    shard_init(1);
    CHECK(shard_count() == SHARD_MAX && shard_of_heap(5) == 0);
}

static void the_number_of_shards_is_bounded(void **state)
{
    (void)state;
    assert_int_equal(shard_count(), SHARDS);
    unit_in_child(change_shards, NULL);
}

static int start(void **state)
{
    (void)state;
    shard_init(SHARDS);
    return page_heap_init() && shard_of_heap(SHARDS - 1) == SHARDS - 1 ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_number_of_shards_is_bounded),
        cmocka_unit_test(lowest_addresses_of_the_fullest_slab_first),
        cmocka_unit_test(used_blocks_can_be_had_alone),
        cmocka_unit_test(slabs_of_growing_classes_are_populated),
        cmocka_unit_test(untouched_slabs_are_not_populated),
        cmocka_unit_test(populated_pages_are_purged),
        cmocka_unit_test(remote_blocks_go_home),
        cmocka_unit_test(purging_inside_slabs_keeps_live_blocks),
        cmocka_unit_test(ticks_purge_what_lay_unused),
        cmocka_unit_test(clean_pages_are_counted),
        cmocka_unit_test(a_sweep_ends_in_steps),
        cmocka_unit_test(random_steps_agree_with_the_model),
        cmocka_unit_test(slabs_are_kept_for_bursts),
        cmocka_unit_test(kept_slabs_are_bounded),
        cmocka_unit_test(kept_slabs_make_room),
        cmocka_unit_test(threads_share_bins),
        cmocka_unit_test(misuse_is_named),
        cmocka_unit_test(scattered_blocks_come_home),
        cmocka_unit_test(free_blocks_of_a_large_machine_are_counted),
        cmocka_unit_test(a_repaired_bin_knows_its_slabs),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
