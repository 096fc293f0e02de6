/* Owns the tests that calloc's memory is zero: behaviour 11.
 *
 * Fresh memory is zero by itself, so every test first makes memory dirty, gives it back in one of
 * the ways that lead to reuse, and only then asks for zeroed blocks. The interesting mistakes are
 * a watermark that forgets what was touched, and a purge that did not happen.
 */
#include "semantics_support.h"

#include <pthread.h>

#define DIRT 0xa5

static const size_t sizes[] = {
    1,     8,      16,     24,     48,   100,     250,     512,     1000,    1024,    1025,
    2000,  4000,   4096,   5000,   8192, 12000,   16384,   30000,   32768,   32769,   50000,
    65536, 100000, 200000, 400000, MIB,  1500000, 2097151, 2 * MIB, 3 * MIB, 5 * MIB, 20 * MIB,
};

/* How many blocks of `size` to use: enough to cross slabs, and never much memory. */
static size_t count_for(size_t size)
{
    size_t count = 4 * MIB / size;
    return count < 2 ? 2 : count > 400 ? 400 : count;
}

static void make_dirty(size_t size, void (*release)(void *))
{
    void *blocks[400];
    size_t count = count_for(size);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = malloc(size);
        assert_non_null(blocks[i]);
        memset(blocks[i], DIRT, malloc_usable_size(blocks[i]));
    }
    for (size_t i = 0; i < count; i++) {
        release(blocks[i]);
    }
}

static void expect_zero(size_t size)
{
    void *blocks[400];
    size_t count = count_for(size);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = calloc(1, size);
        assert_non_null(blocks[i]);
        if (!is_zero(blocks[i], size)) {
            fail_msg("calloc(1, %zu): block %zu of %zu is not zero", size, i, count);
        }
        memset(blocks[i], DIRT, malloc_usable_size(blocks[i]));
    }
    for (size_t i = 0; i < count; i++) {
        free(blocks[i]);
    }
}

/* behaviour 11 */
static void fresh_and_reused_blocks(void **state)
{
    (void)state;
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        expect_zero(sizes[s]);
        make_dirty(sizes[s], free);
        expect_zero(sizes[s]);
        expect_zero(sizes[s]);
    }
}

/* behaviour 11 */
static void blocks_after_a_purge(void **state)
{
    (void)state;
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        make_dirty(sizes[s], free);
        (void)hakmem_purge();
        expect_zero(sizes[s]);
        make_dirty(sizes[s], free);
        (void)malloc_trim(0);
        expect_zero(sizes[s]);
    }
}

/* behaviour 11: pages that served one size come back as another. */
static void memory_that_changes_its_size(void **state)
{
    (void)state;
    for (size_t from = 0; from < COUNT_OF(sizes); from += 2) {
        for (size_t to = 0; to < COUNT_OF(sizes); to += 3) {
            make_dirty(sizes[from], free);
            if ((from + to) % 4 == 0) {
                hakmem_thread_flush();
            }
            expect_zero(sizes[to]);
        }
    }
}

/* behaviour 11: only some pages of a large block are touched, and not the first ones. */
static void partly_touched_blocks(void **state)
{
    (void)state;
    static const size_t whole[] = {20000, 100000, 700000, 1900000, 3 * MIB, 9 * MIB, 20 * MIB};
    static const size_t parts[] = {3000, 30000, 90000, 600000, 2 * MIB, 9 * MIB, 30 * MIB};
    for (size_t w = 0; w < COUNT_OF(whole); w++) {
        for (size_t p = 0; p < COUNT_OF(parts); p++) {
            for (unsigned where = 0; where < 3; where++) {
                char *block = malloc(whole[w]);
                assert_non_null(block);
                block[where == 0 ? 0 : where == 1 ? whole[w] / 2 : whole[w] - 1] = 1;
                free(block);
                expect_zero(parts[p]);
            }
        }
    }
}

/* behaviour 11: what realloc cuts off is free and dirty. */
static void tails_cut_off_by_realloc(void **state)
{
    (void)state;
    static const size_t from[] = {30000, 200000, MIB, 1900000, 4 * MIB, 20 * MIB};
    for (size_t f = 0; f < COUNT_OF(from); f++) {
        for (size_t divisor = 2; divisor <= 32; divisor *= 4) {
            char *block = malloc(from[f]);
            assert_non_null(block);
            memset(block, DIRT, from[f]);
            block = realloc(block, from[f] / divisor);
            assert_non_null(block);
            expect_zero(from[f] / 2);
            expect_zero(4096);
            expect_zero(40000);
            free(block);
        }
    }
}

/* behaviour 11: what an aligned block cuts off around itself is free, and perhaps dirty. */
static void edges_cut_off_by_alignment(void **state)
{
    (void)state;
    for (size_t alignment = 64; alignment <= 4 * MIB; alignment *= 8) {
        make_dirty(3 * alignment, free);
        void *block = memalign(alignment, alignment + 100);
        assert_non_null(block);
        memset(block, DIRT, malloc_usable_size(block));
        expect_zero(alignment);
        free(block);
        expect_zero(alignment);
        expect_zero(2 * alignment + 5);
    }
}

static void *make_dirty_elsewhere(void *argument)
{
    for (size_t s = 0; s < COUNT_OF(sizes); s += 2) {
        make_dirty(sizes[s], free);
    }
    return argument;
}

static void *free_elsewhere(void *block)
{
    free(block);
    return NULL;
}

static void free_in_another_thread(void *block)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, free_elsewhere, block), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* behaviour 11: blocks that other threads made dirty, or gave back. */
static void blocks_of_other_threads(void **state)
{
    (void)state;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, make_dirty_elsewhere, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        expect_zero(sizes[s]);
    }
    for (size_t s = 22; s < COUNT_OF(sizes); s++) {
        make_dirty(sizes[s], free_in_another_thread);
        expect_zero(sizes[s]);
    }
}

/* behaviour 11: both factors count. */
static void products(void **state)
{
    (void)state;
    static const size_t counts[] = {1, 2, 3, 7, 10, 100, 1000};
    for (size_t c = 0; c < COUNT_OF(counts); c++) {
        for (size_t size = 1; size < 3000; size = size * 3 + 1) {
            make_dirty(counts[c] * size, free);
            void *block = calloc(counts[c], size);
            assert_non_null(block);
            assert_true(is_zero(block, counts[c] * size));
            free(block);
        }
    }
}

static void reuse_after_purge(void)
{
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        void *blocks[20];
        for (size_t i = 0; i < COUNT_OF(blocks); i++) {
            blocks[i] = malloc(sizes[s]);
            CHILD_CHECK(blocks[i] != NULL);
            memset(blocks[i], DIRT, malloc_usable_size(blocks[i]));
        }
        for (size_t i = 0; i < COUNT_OF(blocks); i++) {
            free(blocks[i]);
        }
        (void)hakmem_purge();
        for (size_t i = 0; i < COUNT_OF(blocks); i++) {
            blocks[i] = calloc(1, sizes[s]);
            CHILD_CHECK(blocks[i] != NULL);
            CHILD_CHECK(is_zero(blocks[i], sizes[s]));
            memset(blocks[i], DIRT, sizes[s]);
        }
        for (size_t i = 0; i < COUNT_OF(blocks); i++) {
            free(blocks[i]);
        }
    }
}

static void reuse_where_advice_fails(void)
{
    if (!fail_syscall(SYS_madvise, EINVAL)) {
        _exit(CHILD_SKIPPED);
    }
    reuse_after_purge();
}

static void reuse_where_nothing_can_be_given_back(void)
{
    if (!fail_syscall(SYS_madvise, EINVAL) || !fail_syscall(SYS_munmap, ENOMEM)) {
        _exit(CHILD_SKIPPED);
    }
    reuse_after_purge();
}

/* behaviour 11: a purge that the kernel refuses (it does so for locked pages) leaves the dirt. */
static void blocks_after_a_purge_that_failed(void **state)
{
    (void)state;
    run_in_child(reuse_where_advice_fails);
}

/* behaviour 11: nor is the dirt gone when a mapping was to be given back and could not. */
static void blocks_after_an_unmapping_that_failed(void **state)
{
    (void)state;
    run_in_child(reuse_where_nothing_can_be_given_back);
}

/* behaviour 11: a random life, in which each block is dirtied whole and each calloc checked. */
static void random_life(void **state)
{
    (void)state;
    enum { BLOCKS = 256, STEPS = 20000 };
    void *blocks[BLOCKS] = {NULL};
    uint64_t random = 0x9e3779b97f4a7c15u;
    for (unsigned step = 0; step < STEPS; step++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        unsigned slot = (unsigned)(random % BLOCKS);
        size_t limit = (size_t)16 << (random >> 20) % (step % 64 == 0 ? 19 : 13);
        size_t size = (size_t)(random >> 32) % limit + 1;
        free(blocks[slot]);
        bool zeroed = random >> 60 < 8;
        blocks[slot] = zeroed ? calloc(1, size) : malloc(size);
        assert_non_null(blocks[slot]);
        if (zeroed && !is_zero(blocks[slot], size)) {
            fail_msg("step %u: calloc(1, %zu) is not zero", step, size);
        }
        memset(blocks[slot], DIRT, malloc_usable_size(blocks[slot]));
        if (step % 5000 == 4999) {
            (void)hakmem_purge();
        }
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fresh_and_reused_blocks),
        cmocka_unit_test(blocks_after_a_purge),
        cmocka_unit_test(memory_that_changes_its_size),
        cmocka_unit_test(partly_touched_blocks),
        cmocka_unit_test(tails_cut_off_by_realloc),
        cmocka_unit_test(edges_cut_off_by_alignment),
        cmocka_unit_test(blocks_of_other_threads),
        cmocka_unit_test(products),
        cmocka_unit_test(blocks_after_a_purge_that_failed),
        cmocka_unit_test(blocks_after_an_unmapping_that_failed),
        cmocka_unit_test(random_life),
    };
    return library_is_linked() || cmocka_run_group_tests(tests, NULL, NULL);
}
