/* Which block a call gets, and what the hit paths of realloc and malloc_usable_size know of it. */
#include "unit.h"

#include "api/alloc.h"
#include "slab/bin.h"
#include "slab/transfer.h"

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
    assert_ptr_equal(alloc_resize(block, size - size / 6), block);
    char *moved = alloc_resize(block, size + 1);
    assert_ptr_not_equal(moved, block);
    assert_true(unit_all_bytes(moved, 1000, 'x'));
    assert_null(alloc_resize(moved, 0));
}

/* The heap's record is as after its first call, and no larger class has a block to lend, of which
 * requests lose more. */
static struct shrinks *forget_shrinks(void)
{
    release(alloc(1));
    struct heap *heap = heap_of_thread();
    heap_flush(heap, SIZE_MAX);
    heap->shrinks = (struct shrinks){0};
    return &heap->shrinks;
}

static const size_t shrinking[] = {200, 1000, 4000, 20000, 60000, 120000};

/* Makes a block of that length shorter by so many percent; true: it has moved. */
static bool shrinks_by(size_t size, unsigned percent, char **block)
{
    char *before = alloc(size);
    size_t length = usable(before), shorter = length - length * percent / 100;
    memset(before, 'x', length);
    *block = alloc_resize(before, shorter);
    assert_true(unit_all_bytes(*block, shorter, 'x'));
    return *block != before;
}

static void a_block_that_loses_much_moves(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(shrinking); i++) {
        char *blocks[3];
        forget_shrinks();
        assert_false(shrinks_by(shrinking[i], 15, &blocks[0]));
        assert_true(shrinks_by(shrinking[i], 40, &blocks[1]));
        assert_true(shrinks_by(shrinking[i], 60, &blocks[2]));
        assert_true(usable(blocks[1]) < usable(blocks[0]));
        for (size_t j = 0; j < ARRAY_LENGTH(blocks); j++)
            release(blocks[j]);
    }
}

/* Whatever their number, few of many steps copy. */
static void blocks_that_go_to_and_fro_stay(void **state)
{
    (void)state;
    enum { MOST = 20, ROUNDS = 400 };
    for (size_t i = 0; i < ARRAY_LENGTH(shrinking); i++)
        for (unsigned count = 1; count <= MOST; count += MOST - 1) {
            char *blocks[MOST];
            unsigned moved = 0;
            forget_shrinks();
            for (unsigned j = 0; j < count; j++)
                blocks[j] = alloc(shrinking[i]);
            for (unsigned step = 0; step < 2 * ROUNDS; step++)
                for (unsigned j = 0; j < count; j++) {
                    size_t size = step % 2 ? shrinking[i] : shrinking[i] * 55 / 100;
                    char *resized = alloc_resize(blocks[j], size);
                    moved += resized != blocks[j];
                    blocks[j] = resized;
                }
            assert_in_range(moved, 2, count * 8);
            for (unsigned j = 0; j < count; j++)
                release(blocks[j]);
        }
}

static void long_blocks_that_die_at_once_stay(void **state)
{
    (void)state;
    unsigned moved = 0;
    forget_shrinks();
    for (unsigned i = 0; i < 1000; i++) {
        char *block;
        moved += shrinks_by(20000, 40, &block);
        release(block);
    }
    assert_in_range(moved, 1, 20);
}

/* Others of a program in which that happened move again, in the end. */
static void blocks_that_are_kept_move_again(void **state)
{
    (void)state;
    enum { KEPT = 2 * SHRINKS_SPARED };
    static char *kept[KEPT];
    struct shrinks *shrinks = forget_shrinks();
    char *block;
    shrinks_by(20000, 40, &block);
    block = alloc_resize(block, 60000);
    assert_int_equal(shrinks->spared, 0); /* it would have moved in any case */
    release(block);
    shrinks_by(20000, 40, &block);
    block = alloc_resize(block, 20000);
    assert_int_equal(shrinks->spared, SHRINKS_SPARED);
    for (unsigned i = 0; i < KEPT; i++)
        assert_int_equal(shrinks_by(20000, 40, &kept[i]), i >= SHRINKS_SPARED);
    for (unsigned i = 0; i < KEPT; i++)
        release(kept[i]);
    release(block);
}

/* A block of a larger class serves, as long as the one that shrinks: nothing is copied. */
static void what_a_larger_class_lends_saves_nothing(void **state)
{
    (void)state;
    forget_shrinks();
    heap_flush(heap_of_thread(), SIZE_MAX);
    transfer_drain(SIZE_MAX);
    char *block = alloc(9216), *cached = alloc(9216);
    release(cached);
    assert_int_equal(usable(block), 9216);
    assert_ptr_equal(alloc_resize(block, 7168), block);
    release(block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_that_loses_much_moves),
        cmocka_unit_test(blocks_that_go_to_and_fro_stay),
        cmocka_unit_test(long_blocks_that_die_at_once_stay),
        cmocka_unit_test(blocks_that_are_kept_move_again),
        cmocka_unit_test(what_a_larger_class_lends_saves_nothing),
        cmocka_unit_test(long_blocks_are_reused_before_fresh_ones),
        cmocka_unit_test(fresh_long_blocks_come_singly),
        cmocka_unit_test(fresh_long_blocks_need_no_clearing),
        cmocka_unit_test(sizes_of_live_blocks_are_known),
        cmocka_unit_test(misuse_is_named),
        cmocka_unit_test(resizing_in_a_slab_moves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
