/* slab/slab: for every class, blocks taken and put back against an array of bool, the walker after
 * every step; creation, lookup and destruction; the messages on misuse (behaviour 24). */
#include "unit.h"

#include "checks/checks.h"
#include "map/metadata.h"
#include "os/limits.h"
#include "slab/shard.h"
#include "slab/slab.h"
#include "slab/sweep.h"
#include "span/page_heap.h"

enum { BLOCKS_MAX = 4096 };

struct model {
    bool free[BLOCKS_MAX];
    unsigned free_blocks;
    unsigned watermark;
};

static struct model model;

static unsigned index_of(const struct slab *slab, const void *block)
{
    size_t offset = (size_t)((const char *)block - slab->base);
    CHECK(offset % size_classes[slab->size_class].size == 0);
    return (unsigned)(offset / size_classes[slab->size_class].size);
}

static void compare(const struct slab *slab)
{
    slab_check(slab);
    CHECK(slab->free_blocks == model.free_blocks);
    CHECK(slab->watermark == model.watermark);
    for (unsigned i = 0; i < slab->blocks; i++)
        CHECK(bitmap_test(slab->free, i) == model.free[i]);
}

static void take(struct slab *slab, unsigned count)
{
    void *blocks[BLOCKS_MAX];
    unsigned taken = slab_take(slab, blocks, count), next = 0;
    CHECK(taken == size_min(count, model.free_blocks));
    for (unsigned i = taken; i-- > 0;) {
        while (!model.free[next])
            next++;
        CHECK(index_of(slab, blocks[i]) == next);
        CHECK(slab_index(slab, blocks[i], "test") == next);
        model.free[next] = false;
        model.watermark = (unsigned)size_max(model.watermark, next + 1);
    }
    model.free_blocks -= taken;
}

static void put(struct slab *slab, unsigned from)
{
    for (unsigned i = 0; i < slab->blocks; i++) {
        unsigned index = (from + i) % slab->blocks;
        if (model.free[index])
            continue;
        void *block = slab->base + (size_t)index * size_classes[slab->size_class].size;
        CHECK(slab_put(slab, &block, 1) == 1);
        model.free[index] = true;
        model.free_blocks++;
        return;
    }
}

/* Puts a row of blocks back, one after the other `step` indices apart: those before the first that
 * is free already. */
static void put_row(struct slab *slab, unsigned from, unsigned count, int step)
{
    void *blocks[BLOCKS_MAX];
    unsigned expected = 0;
    bool seen = false;
    for (unsigned i = 0; i < count; i++) {
        unsigned index = (from + (unsigned)((int)i * step)) % slab->blocks;
        blocks[i] = slab->base + (size_t)index * size_classes[slab->size_class].size;
        seen |= model.free[index];
        if (seen)
            continue;
        model.free[index] = true;
        expected++;
    }
    CHECK(slab_put(slab, blocks, count) == expected);
    model.free_blocks += expected;
}

static void check_lookup(const struct slab *slab, const struct slab *expected, unsigned class)
{
    size_t units = size_classes[slab->size_class].units;
    for (size_t unit = 0; unit < units; unit++) {
        CHECK(slab_lookup(slab->base + unit * UNIT_SIZE) == expected);
        CHECK(slab_lookup(slab->base + (unit + 1) * UNIT_SIZE - 1) == expected);
        unsigned mapped = size_class_is_long(slab->size_class) ? CLASS_NONE : class;
        CHECK(class_map_get(slab->base + unit * UNIT_SIZE) == mapped);
        CHECK(class_map_get(slab->base + (unit + 1) * UNIT_SIZE - 1) == mapped);
    }
}

static struct slab *create(unsigned class, unsigned shard)
{
    struct slab *slab = slab_create(class, shard, 1, true);
    CHECK(slab && slab->size_class == class && slab->shard == shard);
    CHECK((uintptr_t)slab->base % UNIT_SIZE == 0);
    memset(&model, 0, sizeof model);
    memset(model.free, true, slab->blocks);
    model.free_blocks = slab->blocks;
    return slab;
}

static void run_class(unsigned class)
{
    uint64_t random = class;
    size_t used = page_heap_stats().used_pages;
    struct slab *slab = create(class, class % 3);
    CHECK(page_heap_stats().used_pages == used + size_classes[class].units * UNIT_PAGES);
    check_lookup(slab, slab, class);
    compare(slab);
    for (int step = 0; step < 300; step++) {
        bool filling = step / 60 % 2 == 0;
        if (unit_below(&random, 4) < (filling ? 3u : 1u))
            take(slab, unit_below(&random, slab->blocks / 4 + 2));
        for (unsigned i = unit_below(&random, slab->blocks / 4 + 2); i > 0; i--)
            put(slab, unit_below(&random, slab->blocks));
        compare(slab);
        static const int steps[] = {1, -1, 0, 2, -3};
        put_row(
            slab, unit_below(&random, slab->blocks) + 3 * 300u * slab->blocks,
            1 + unit_below(&random, 299), steps[step % 5]);
        compare(slab);
    }
    take(slab, BLOCKS_MAX);
    CHECK(slab->free_blocks == 0);
    compare(slab);
    take(slab, 1);
    while (slab->free_blocks < slab->blocks)
        put(slab, unit_below(&random, slab->blocks));
    compare(slab);
    struct slab copy = *slab;
    slab_destroy(slab);
    check_lookup(&copy, NULL, CLASS_NONE);
    CHECK(page_heap_stats().used_pages == used);
    page_heap_check();
}

static void every_class_agrees_with_the_model(void **state)
{
    (void)state;
    for (unsigned class = 1; class < CLASS_COUNT; class ++)
        run_class(class);
}

/* Only what was handed out is dirty afterwards; a slab made of the rest knows that it is zero. */
static void pages_never_handed_out_stay_clean(void **state)
{
    (void)state;
    page_heap_purge(SIZE_MAX);
    assert_int_equal(page_heap_stats().dirty_free_pages, 0);
    struct slab *slab = create(size_class_of(64), 0);
    assert_true(slab->clean);
    void *blocks[100];
    assert_int_equal(slab_take(slab, blocks, 100), 100);
    for (int i = 0; i < 100; i++)
        memset(blocks[i], 1, 64);
    assert_int_equal(slab_put(slab, blocks, 100), 100);
    slab_destroy(slab);
    assert_int_equal(page_heap_stats().dirty_free_pages, 2); /* 6400 bytes */
    slab = create(size_class_of(64), 0);
    assert_false(slab->clean);
    slab_destroy(slab);
    assert_int_equal(page_heap_stats().dirty_free_pages, 2);
}

static void nothing_is_found_where_no_slab_is(void **state)
{
    (void)state;
    struct unit_run taken;
    int local = 0;
    assert_true(page_heap_take(0, 7, 1, true, &taken));
    assert_null(slab_lookup(superslab_address(taken.superslab, taken.run.first)));
    assert_null(slab_lookup(&local));
    assert_null(slab_lookup(NULL));
    page_heap_put(taken.superslab, taken.run, 0);
}

/* A single block becomes longer where the units behind it are free, and shorter anywhere. */
static void single_blocks_change_their_length(void **state)
{
    (void)state;
    void *block;
    unsigned two = size_class_of(2 * UNIT_SIZE), eight = size_class_of(8 * UNIT_SIZE);
    size_t used = page_heap_stats().used_pages;
    struct slab *slab = create(two, 1), before = *slab;
    assert_int_equal(slab_take(slab, &block, 1), 1);
    memset(block, 1, 2 * UNIT_SIZE);
    assert_true(slab_resize(slab, eight));
    assert_int_equal(slab->size_class, eight);
    check_lookup(slab, slab, eight);
    slab_check(slab);
    memset(block, 2, 8 * UNIT_SIZE);
    assert_int_equal(page_heap_stats().used_pages, used + 8 * UNIT_PAGES);
    struct run behind = {superslab_unit_of(slab->base) + 2, 6};
    assert_false(page_heap_take_at(slab->superslab, behind));
    assert_true(slab_resize(slab, two));
    check_lookup(&before, slab, two);
    assert_true(page_heap_take_at(slab->superslab, behind));
    assert_null(slab_lookup(slab->base + 2 * UNIT_SIZE));
    assert_false(slab_resize(slab, size_class_of(3 * UNIT_SIZE)));
    assert_int_equal(slab->size_class, two);
    check_lookup(slab, slab, two);
    assert_true(unit_all_bytes(block, 2 * UNIT_SIZE, 2));
    page_heap_put(slab->superslab, behind, 0);
    assert_int_equal(slab_put(slab, &block, 1), 1);
    slab_destroy(slab);
    assert_int_equal(page_heap_stats().used_pages, used);
    page_heap_check();
}

static void single_slabs_start_where_they_are_asked_to(void **state)
{
    (void)state;
    struct slab *slabs[6];
    for (unsigned i = 0; i < 6; i++) {
        slabs[i] = slab_create(size_class_of(3 * UNIT_SIZE), 0, 1u << i, true);
        assert_non_null(slabs[i]);
        assert_int_equal((uintptr_t)slabs[i]->base % (UNIT_SIZE << i), 0);
    }
    for (unsigned i = 0; i < 6; i++)
        slab_destroy(slabs[i]);
    page_heap_check();
}

/* behaviour 11: whatever was in the units before, in fresh blocks and in used ones. */
static void blocks_are_cleared(void **state)
{
    (void)state;
    static const size_t sizes[] = {8192, 36 * KIB, 120 * KIB, 3 * UNIT_SIZE, LARGE_MAX};
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        for (unsigned written = 0; written < 4; written++) {
            struct slab *slab = create(size_class_of(sizes[i]), 0);
            void *block;
            assert_int_equal(slab_take(slab, &block, 1), 1);
            slab_clear(block, sizes[i], BLOCK_UNUSED);
            assert_true(unit_all_bytes(block, sizes[i], 0));
            /* Of the first round of all nothing is dirty afterwards but some pages. */
            memset((char *)block + written * sizes[i] / 4, 7, sizes[i] / 4);
            slab_clear(block, sizes[i] - 5, BLOCK_FREED);
            assert_true(unit_all_bytes(block, sizes[i] - 5, 0));
            memset((char *)block + written * sizes[i] / 4, 7, sizes[i] / 4);
            assert_int_equal(slab_put(slab, &block, 1), 1);
            slab_destroy(slab);
        }
    }
}

/* A slab that ends leaves pages as dirty that nobody wrote to. */
static void what_nobody_wrote_to_stays_so(void **state)
{
    (void)state;
    struct slab *slabs[64];
    unsigned last = 0;
    while (slabs[last] = create(size_class_of(LARGE_MAX), 0), !slabs[last]->clean)
        assert_true(++last < ARRAY_LENGTH(slabs));
    char *base = slabs[last]->base;
    for (unsigned round = 0; round < 2; round++) {
        void *block;
        size_t before = os_footprint_read("").resident_bytes;
        assert_int_equal(slab_take(slabs[last], &block, 1), 1);
        slab_clear(block, LARGE_MAX, BLOCK_UNUSED);
        /* A sanitizer of threads has memory of its own for what is read. */
        size_t after = os_footprint_read("").resident_bytes;
        assert_true(HAKMEM_SANITIZE_THREAD || after < before + LARGE_MAX / 2);
        assert_int_equal(slab_put(slabs[last], &block, 1), 1);
        slab_destroy(slabs[last]);
        slabs[last] = create(size_class_of(LARGE_MAX), 0);
        assert_false(slabs[last]->clean);
        assert_ptr_equal(slabs[last]->base, base);
    }
    for (unsigned i = 0; i <= last; i++)
        slab_destroy(slabs[i]);
}

static struct slab *misused;

static void put_offset(void *offset)
{
    void *block = misused->base + *(size_t *)offset;
    if (slab_put(misused, &block, 1) == 0)
        slab_refuse(misused, block, "free");
}

static void misuse_is_named(void **state)
{
    (void)state;
    char line[200];
    void *blocks[4];
    misused = create(size_class_of(96), 0);
    assert_int_equal(slab_take(misused, blocks, 4), 4);
    struct {
        size_t offset;
        const char *defect;
    } cases[] = {
        {5 * 96, ""},
        {96 + 16, ": inside a block of 96 bytes at "},
        {96 + 17, ": misaligned"},
        {65536 / 96 * 96, ": not allocated by hakmem"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        char *pointer = misused->base + cases[i].offset;
        int length = snprintf(
            line, sizeof line, "hakmem: free(): %s %p%s",
            i == 0 ? "double free of" : "invalid pointer", (void *)pointer, cases[i].defect);
        if (i == 1)
            snprintf(line + length, sizeof line - (size_t)length, "%p", blocks[2]);
        unit_expect_abort(put_offset, &cases[i].offset, line);
    }
    assert_int_equal(slab_put(misused, blocks, 4), 4);
    slab_destroy(misused);
}

/* Of a slab in which one block is used: all pages but its own, whatever the size, and also the last
 * one, of which a part lies behind the last block. */
static void all_free_pages_of_a_slab_go(void **state)
{
    static void *held[BLOCKS_MAX];
    (void)state;
    shard_init(1);
    for (unsigned class = 1; class < CLASS_COUNT; class ++) {
        size_t size = size_classes[class].size, bytes = size_classes[class].units * UNIT_SIZE;
        unsigned blocks = size_classes[class].blocks, taken = 0;
        if (blocks < 2 || blocks > BLOCKS_MAX)
            continue;
        while (taken < blocks)
            taken += bin_refill(0, class, held + taken, 1, 1, REFILL_MAP);
        struct slab *slab = slab_lookup(held[0]);
        size_t grain = slab_grain(slab);
        unsigned kept = 0;
        for (unsigned i = 0; i < blocks; i++)
            kept = held[i] == slab->base ? i : kept;
        assert_ptr_equal(held[kept], slab->base);
        held[kept] = held[blocks - 1];
        bin_flush(0, class, held, blocks - 1);
        assert_int_equal(sweep_purge(SIZE_MAX), bytes - round_up(size, grain));
        void *last = slab->base;
        bin_flush(0, class, &last, 1);
        sweep_purge(SIZE_MAX);
    }
}

static int start(void **state)
{
    (void)state;
    return page_heap_init() ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_class_agrees_with_the_model),
        cmocka_unit_test(pages_never_handed_out_stay_clean),
        cmocka_unit_test(nothing_is_found_where_no_slab_is),
        cmocka_unit_test(single_blocks_change_their_length),
        cmocka_unit_test(single_slabs_start_where_they_are_asked_to),
        cmocka_unit_test(blocks_are_cleared),
        cmocka_unit_test(what_nobody_wrote_to_stays_so),
        cmocka_unit_test(all_free_pages_of_a_slab_go),
        cmocka_unit_test(misuse_is_named),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
