/* Which block a call gets, and what the hit paths of realloc and malloc_usable_size know of it. */
#include "unit.h"

#include "api/alloc.h"
#include "slab/bin.h"

static size_t usable(const void *block)
{
    return alloc_usable_size(block, "test");
}

/* The pages of a long block have been touched: they serve a smaller request before fresh ones do,
 * but not one that would waste much of them. */
static void long_blocks_are_reused_before_fresh_ones(void **state)
{
    (void)state;
    enum { COUNT = 4 };
    char *blocks[COUNT];
    for (unsigned i = 0; i < COUNT; i++)
        assert_int_equal(usable(blocks[i] = alloc(20480)), 20480);
    for (unsigned i = 0; i < COUNT; i++)
        release(blocks[i]);
    char *small = alloc(8193), *same = alloc(20480), *less = alloc(18432), *least = alloc(14337);
    assert_int_equal(usable(small), 9216);
    assert_ptr_equal(same, blocks[3]);
    assert_ptr_equal(less, blocks[2]);
    assert_ptr_equal(least, blocks[1]);
    char *aligned = alloc_aligned(16384, 16384);
    assert_int_equal(usable(aligned), 16384);
    char *more = alloc(20481);
    assert_int_equal(usable(more), 22528);
    release(small);
    release(same);
    release(less);
    release(least);
    release(aligned);
    release(more);
}

/* One at a time, so that what is freed meanwhile comes first. */
static void fresh_long_blocks_come_singly(void **state)
{
    (void)state;
    char *first = alloc(30720);
    const struct slab *slab = slab_lookup(first);
    unsigned watermark = slab->watermark;
    char *second = alloc(30720);
    assert_int_equal(slab->watermark, watermark + 1);
    assert_ptr_equal(second, first + 30720);
    release(first);
    assert_ptr_equal(alloc(30720), first);
    assert_int_equal(slab->watermark, watermark + 1);
    release(first);
    release(second);
}

/* calloc does not touch what is known to be zero, and clears what is not. */
static void fresh_long_blocks_need_no_clearing(void **state)
{
    (void)state;
    enum { SIZE = 32768 }; /* no larger class to borrow from */
    char *first = alloc_zeroed(8, SIZE / 8);
    /* With long pages a look at the first word touches them all. */
    bool clean = slab_lookup(first)->clean && sysconf(_SC_PAGESIZE) <= SIZE / 4;
    assert_true(!clean || !unit_is_resident(first + SIZE / 2));
    assert_true(unit_all_bytes(first, SIZE, 0));
    memset(first, 'x', SIZE);
    char *second = alloc_zeroed(1, SIZE);
    assert_ptr_not_equal(second, first);
    assert_true(!clean || !unit_is_resident(second + SIZE / 2));
    release(first);
    assert_ptr_equal(alloc_zeroed(1, SIZE), first);
    assert_true(unit_all_bytes(first, SIZE, 0));
    memset(first, 'x', SIZE);
    release(first);
    /* A borrowed block was used before. */
    char *borrowed = alloc_zeroed(1, SIZE - SIZE / 8);
    assert_true(unit_all_bytes(borrowed, SIZE - SIZE / 8, 0));
    release(borrowed);
    release(second);
}

static void sizes_of_live_blocks_are_known(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 16, 100, 1000, 5000, 32768, 40000, 3000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *block = alloc(sizes[i]), *unwritten = alloc(sizes[i]);
        assert_true(usable(unwritten) >= sizes[i]);
        assert_true(usable(block) >= sizes[i]);
        memset(block, 'x', usable(block));
        assert_true(usable(block) >= sizes[i]);
        release(block);
        release(unwritten);
        /* Both carry the mark of freed blocks now, if they came from a magazine. */
        block = alloc(sizes[i]);
        assert_true(usable(block) >= sizes[i]);
        release(block);
    }
    assert_int_equal(usable(NULL), 0);
}

static void ask_after_free(void *block)
{
    release(block);
    usable(block);
}

static void ask_after_two(void *block)
{
    char *other = alloc(96);
    release(other);
    release(block);
    alloc(96);
    release(alloc(96));
    release(block);
    usable(block);
}

static void ask_inside(void *block)
{
    usable((char *)block + 16);
}

static void resize_after_free(void *block)
{
    release(block);
    alloc_resize(block, 50);
}

static void resize_inside(void *block)
{
    alloc_resize((char *)block + 32, 50);
}

static void misuse_is_named(void **state)
{
    (void)state;
    char line[200], *block;
    do
        block = alloc(96); /* a class without a slab borrows its first blocks from another */
    while (usable(block) > 96);
    memset(block, 'x', 96);
    snprintf(line, sizeof line, "hakmem: test(): double free of %p", (void *)block);
    unit_expect_abort(ask_after_free, block, line);
    unit_expect_abort(ask_after_two, block, line);
    snprintf(line, sizeof line, "hakmem: realloc(): double free of %p", (void *)block);
    unit_expect_abort(resize_after_free, block, line);
    snprintf(
        line, sizeof line, "hakmem: test(): invalid pointer %p: inside a block of 96 bytes at %p",
        (void *)(block + 16), (void *)block);
    unit_expect_abort(ask_inside, block, line);
    snprintf(
        line, sizeof line,
        "hakmem: realloc(): invalid pointer %p: inside a block of 96 bytes at %p",
        (void *)(block + 32), (void *)block);
    unit_expect_abort(resize_inside, block, line);
    release(block);
}

static void resizing_in_a_slab_moves_nothing(void **state)
{
    (void)state;
    char *block = alloc(1000);
    memset(block, 'x', 1000);
    size_t size = usable(block);
    assert_ptr_equal(alloc_resize(block, size), block);
    assert_ptr_equal(alloc_resize(block, size / 2 + 16), block);
    char *moved = alloc_resize(block, size + 1);
    assert_ptr_not_equal(moved, block);
    assert_true(unit_all_bytes(moved, 1000, 'x'));
    assert_null(alloc_resize(moved, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_blocks_are_reused_before_fresh_ones),
        cmocka_unit_test(fresh_long_blocks_come_singly),
        cmocka_unit_test(fresh_long_blocks_need_no_clearing),
        cmocka_unit_test(sizes_of_live_blocks_are_known),
        cmocka_unit_test(misuse_is_named),
        cmocka_unit_test(resizing_in_a_slab_moves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
