/* Owns the tests of what realloc keeps: behaviours 10, 12 and 13, across every pair of tiers.
 */
#include "semantics_support.h"

#include <pthread.h>

static const size_t sizes[] = {
    0,
    1,
    15,
    16,
    17,
    24,
    32,
    33,
    100,
    128,
    250,
    500,
    1000,
    1024,
    1025,
    2000,
    4095,
    4096,
    5000,
    8192,
    10000,
    16384,
    30000,
    32768,
    32769,
    40000,
    65536,
    70000,
    131072,
    200000,
    500000,
    MIB,
    MIB + 1,
    1500000,
    2 * MIB - 4096,
    2 * MIB,
    2 * MIB + 1,
    3 * MIB,
    4 * MIB + 4096,
    9 * MIB + 5,
};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void resize_and_compare(void *block, size_t from, size_t to)
{
    assert_non_null(block);
    pattern_fill(block, from, 11);
    void *resized = realloc(block, to);
    if (to == 0) {
        assert_null(resized);
        return;
    }
    assert_non_null(resized);
    assert_true(is_aligned(resized, 16));
    assert_true(malloc_usable_size(resized) >= to);
    assert_true(pattern_holds(resized, smaller(from, to), 11));
    pattern_fill(resized, to, 12);
    free(resized);
}

/* behaviour 13 */
static void contents_survive_every_pair_of_sizes(void **state)
{
    (void)state;
    for (size_t from = 0; from < COUNT_OF(sizes); from++) {
        for (size_t to = 0; to < COUNT_OF(sizes); to++) {
            resize_and_compare(malloc(sizes[from]), sizes[from], sizes[to]);
        }
    }
}

/* behaviour 13: blocks that came aligned may be resized like any other. */
static void aligned_blocks_are_resized(void **state)
{
    (void)state;
    for (size_t alignment = 32; alignment <= 4 * MIB; alignment *= 8) {
        for (size_t from = 1; from < COUNT_OF(sizes); from += 3) {
            for (size_t to = 0; to < COUNT_OF(sizes); to += 5) {
                resize_and_compare(memalign(alignment, sizes[from]), sizes[from], sizes[to]);
            }
        }
    }
}

/* behaviour 13: one block grows step by step beside others that pin what follows it. */
static void growth_beside_neighbours(void **state)
{
    (void)state;
    enum { BLOCKS = 8 };
    unsigned char *blocks[BLOCKS];
    size_t length = 10;
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(length);
        assert_non_null(blocks[i]);
        pattern_fill(blocks[i], length, i);
    }
    while (length < 5 * MIB) {
        size_t longer = length + length / 2 + 3;
        for (unsigned i = 0; i < BLOCKS; i++) {
            blocks[i] = realloc(blocks[i], longer);
            assert_non_null(blocks[i]);
            assert_true(pattern_holds(blocks[i], length, i));
            pattern_fill(blocks[i], longer, i);
        }
        length = longer;
    }
    while (length > 40) {
        size_t shorter = length / 2;
        for (unsigned i = 0; i < BLOCKS; i++) {
            blocks[i] = realloc(blocks[i], shorter);
            assert_non_null(blocks[i]);
            assert_true(pattern_holds(blocks[i], shorter, i));
        }
        length = shorter;
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
}

static void *resize_elsewhere(void *block)
{
    return realloc(block, 6000);
}

/* behaviour 13: a block of another thread is resized like one's own. */
static void blocks_of_other_threads_are_resized(void **state)
{
    (void)state;
    static const size_t from[] = {100, 3000, 50000, 3 * MIB};
    for (size_t i = 0; i < COUNT_OF(from); i++) {
        pthread_t thread;
        void *resized = NULL;
        void *block = malloc(from[i]);
        assert_non_null(block);
        pattern_fill(block, from[i], 21);
        assert_int_equal(pthread_create(&thread, NULL, resize_elsewhere, block), 0);
        assert_int_equal(pthread_join(thread, &resized), 0);
        assert_non_null(resized);
        assert_true(pattern_holds(resized, smaller(from[i], 6000), 21));
        free(resized);
    }
}

/* behaviour 12 */
static void resize_to_nothing_frees(void **state)
{
    (void)state;
    static const size_t each[] = {1, 300, 5000, 60000, 500000, 3 * MIB};
    for (size_t i = 0; i < COUNT_OF(each); i++) {
        errno = ERRNO_MARK;
        assert_null(realloc(malloc(each[i]), opaque(0)));
        assert_null(reallocarray(malloc(each[i]), opaque(0), 10));
        assert_null(reallocarray(malloc(each[i]), 10, opaque(0)));
        assert_int_equal(errno, ERRNO_MARK);
    }
    size_t before = virtual_bytes();
    for (unsigned i = 0; i < 100000; i++) {
        assert_null(realloc(malloc(20000), opaque(0)));
    }
    for (unsigned i = 0; i < 2000; i++) {
        assert_null(realloc(malloc(3 * MIB), opaque(0)));
    }
    assert_true(virtual_bytes() < before + 512 * MIB);
}

/* behaviour 13: blocks of every tier stay as they were when there is no memory for more. */
static void failed_resize_keeps_the_block(void **state)
{
    (void)state;
    static const size_t demands[] = {
        SIZE_MAX, SIZE_MAX - 4095, (size_t)PTRDIFF_MAX + 1, PTRDIFF_MAX, (size_t)1 << 60,
    };
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        void *block = malloc(sizes[s]);
        assert_non_null(block);
        size_t usable = malloc_usable_size(block);
        pattern_fill(block, usable, 31);
        for (size_t d = 0; d < COUNT_OF(demands); d++) {
            errno = ERRNO_MARK;
            assert_null(realloc(block, opaque(demands[d])));
            assert_int_equal(errno, ENOMEM);
        }
        assert_int_equal(malloc_usable_size(block), usable);
        assert_true(pattern_holds(block, usable, 31));
        free(block);
    }
}

static void resize_without_a_kernel(void)
{
    enum { BLOCKS = 16 };
    static const size_t from[BLOCKS] = {
        1,     40,    200,    1000, 1024,    3000,    9000,    30000,
        32768, 60000, 300000, MIB,  2 * MIB, 3 * MIB, 8 * MIB, 40 * MIB,
    };
    void *blocks[BLOCKS];
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(from[i]);
        CHILD_CHECK(blocks[i] != NULL);
        pattern_fill(blocks[i], from[i], i);
    }
    if (!fail_syscall(SYS_mremap, ENOMEM) || !fail_syscall(SYS_mmap, ENOMEM)) {
        _exit(CHILD_SKIPPED);
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        errno = ERRNO_MARK;
        void *bigger = realloc(blocks[i], 100 * MIB);
        CHILD_CHECK(bigger == NULL);
        CHILD_CHECK(errno == ENOMEM);
        CHILD_CHECK(pattern_holds(blocks[i], from[i], i));
        void *shorter = realloc(blocks[i], from[i] / 2 + 1);
        if (shorter != NULL) {
            blocks[i] = shorter;
        }
        CHILD_CHECK(pattern_holds(blocks[i], from[i] / 2, i));
        free(blocks[i]);
    }
}

/* behaviour 13: also when it is the kernel that has no memory. */
static void failed_resize_keeps_the_block_when_the_kernel_refuses(void **state)
{
    (void)state;
    run_in_child(resize_without_a_kernel);
}

static void resize_without_mremap(void)
{
    if (!fail_syscall(SYS_mremap, ENOMEM)) {
        _exit(CHILD_SKIPPED);
    }
    void *block = malloc(2 * MIB);
    size_t length = 2 * MIB;
    CHILD_CHECK(block != NULL);
    pattern_fill(block, length, 41);
    while (length < 40 * MIB) {
        size_t longer = length * 3 / 2;
        errno = ERRNO_MARK;
        block = realloc(block, longer);
        CHILD_CHECK(block != NULL);
        CHILD_CHECK(errno == ERRNO_MARK);
        CHILD_CHECK(pattern_holds(block, length, 41));
        pattern_fill(block, longer, 41);
        length = longer;
    }
    free(block);
}

/* behaviour 13: a big block that cannot be moved by the kernel is copied. */
static void big_blocks_grow_without_mremap(void **state)
{
    (void)state;
    run_in_child(resize_without_mremap);
}

/* behaviour 13: a long random walk of one set of blocks, contents checked at each step. */
static void random_walk(void **state)
{
    (void)state;
    enum { BLOCKS = 64, STEPS = 20000 };
    void *blocks[BLOCKS] = {NULL};
    size_t lengths[BLOCKS] = {0};
    uint64_t random = 88172645463325252u;
    for (unsigned step = 0; step < STEPS; step++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        unsigned slot = (unsigned)(random % BLOCKS);
        size_t limit = (size_t)16 << (random >> 20) % (step % 100 == 0 ? 18 : 12);
        size_t wanted = (size_t)(random >> 32) % limit + 1;
        void *resized = realloc(blocks[slot], wanted);
        assert_non_null(resized);
        assert_true(pattern_holds(resized, smaller(lengths[slot], wanted), slot));
        pattern_fill(resized, wanted, slot);
        blocks[slot] = resized;
        lengths[slot] = wanted;
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        assert_true(pattern_holds(blocks[i], lengths[i], i));
        free(blocks[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contents_survive_every_pair_of_sizes),
        cmocka_unit_test(aligned_blocks_are_resized),
        cmocka_unit_test(growth_beside_neighbours),
        cmocka_unit_test(blocks_of_other_threads_are_resized),
        cmocka_unit_test(resize_to_nothing_frees),
        cmocka_unit_test(failed_resize_keeps_the_block),
        cmocka_unit_test(failed_resize_keeps_the_block_when_the_kernel_refuses),
        cmocka_unit_test(big_blocks_grow_without_mremap),
        cmocka_unit_test(random_walk),
    };
    return library_is_linked() || cmocka_run_group_tests(tests, NULL, NULL);
}
