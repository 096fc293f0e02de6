/* Owns the tests of malloc_usable_size: behaviour 21.
 *
 * Every byte that it promises is written and read back while the neighbours are alive, so that a
 * promise of one byte too many shows as a broken pattern.
 */
#include "semantics_support.h"

#include <pthread.h>

/* behaviour 21 */
static void null_has_no_bytes(void **state)
{
    (void)state;
    errno = ERRNO_MARK;
    assert_int_equal(malloc_usable_size(NULL), 0);
    assert_int_equal(hakmem_usable_size(NULL), 0);
    assert_int_equal(errno, ERRNO_MARK);
}

/* behaviour 21 */
static void at_least_the_request(void **state)
{
    (void)state;
    for (size_t size = 0; size <= 12 * MIB; size += size < 35000 ? 1 : size / 57) {
        void *block = malloc(size);
        assert_non_null(block);
        errno = ERRNO_MARK;
        size_t usable = malloc_usable_size(block);
        assert_int_equal(errno, ERRNO_MARK);
        assert_true(usable >= size);
        /* More than a page and a quarter on top would be waste that nobody asked for; of blocks in
         * whole units of 64 KiB half as much again may be addresses, which take no memory. */
        size_t part = size > 128 * 1024 && size <= 2 * MIB ? 2 : 4;
        assert_true(usable <= size + size / part + 4096);
        assert_int_equal(hakmem_usable_size(block), usable);
        free(block);
    }
}

enum { NEIGHBOURS = 48 };

static void fill_neighbours(size_t size, void *(*allocate)(size_t))
{
    void *blocks[NEIGHBOURS];
    size_t usable[NEIGHBOURS];
    for (unsigned i = 0; i < NEIGHBOURS; i++) {
        blocks[i] = allocate(size);
        assert_non_null(blocks[i]);
        usable[i] = malloc_usable_size(blocks[i]);
        pattern_fill(blocks[i], usable[i], i);
    }
    for (unsigned i = 0; i < NEIGHBOURS; i++) {
        assert_int_equal(malloc_usable_size(blocks[i]), usable[i]);
        assert_true(pattern_holds(blocks[i], usable[i], i));
    }
    for (unsigned i = 0; i < NEIGHBOURS; i++) {
        free(blocks[(i * 5) % NEIGHBOURS]);
    }
}

static void *allocate_aligned(size_t size)
{
    return memalign(256, size);
}

static void *allocate_resized(size_t size)
{
    return realloc(malloc(size / 3 + 1), size);
}

/* behaviour 21 */
static void every_byte_is_writable(void **state)
{
    (void)state;
    for (size_t size = 0; size <= 300000; size += size < 300 ? 1 : size / 11) {
        fill_neighbours(size, malloc);
        fill_neighbours(size, allocate_aligned);
        fill_neighbours(size + 1, allocate_resized);
    }
    static const size_t large[] = {MIB, 2 * MIB - 1, 2 * MIB, 2 * MIB + 1, 3 * MIB + 5};
    for (size_t i = 0; i < COUNT_OF(large); i++) {
        void *blocks[3] = {malloc(large[i]), malloc(large[i]), memalign(8 * MIB, large[i])};
        for (unsigned b = 0; b < COUNT_OF(blocks); b++) {
            assert_non_null(blocks[b]);
            pattern_fill(blocks[b], malloc_usable_size(blocks[b]), b);
        }
        for (unsigned b = 0; b < COUNT_OF(blocks); b++) {
            assert_true(pattern_holds(blocks[b], malloc_usable_size(blocks[b]), b));
            free(blocks[b]);
        }
    }
}

static const size_t stable_sizes[] = {1, 100, 1024, 9000, 32768, 60000, MIB, 2 * MIB, 7 * MIB};

static void churn(void)
{
    void *blocks[300];
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
        blocks[i] = malloc(i * i * 5);
        assert_non_null(blocks[i]);
    }
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
        free(blocks[i]);
    }
    (void)hakmem_purge();
}

static void *measure_elsewhere(void *block)
{
    return (void *)malloc_usable_size(block);
}

/* behaviour 21: the answer is the same for the whole life of the block, in every thread. */
static void the_answer_is_stable(void **state)
{
    (void)state;
    void *blocks[COUNT_OF(stable_sizes)];
    size_t usable[COUNT_OF(stable_sizes)];
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
        blocks[i] = malloc(stable_sizes[i]);
        assert_non_null(blocks[i]);
        usable[i] = malloc_usable_size(blocks[i]);
    }
    churn();
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
        pthread_t thread;
        void *elsewhere = NULL;
        assert_int_equal(malloc_usable_size(blocks[i]), usable[i]);
        assert_int_equal(pthread_create(&thread, NULL, measure_elsewhere, blocks[i]), 0);
        assert_int_equal(pthread_join(thread, &elsewhere), 0);
        assert_int_equal((size_t)elsewhere, usable[i]);
        free(blocks[i]);
    }
}

/* behaviour 21: growing into the usable bytes needs no other block. */
static void growth_within_the_usable_bytes_stays_in_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(stable_sizes); i++) {
        void *block = malloc(stable_sizes[i]);
        assert_non_null(block);
        size_t usable = malloc_usable_size(block);
        uintptr_t address = (uintptr_t)block;
        block = realloc(block, usable);
        assert_int_equal((uintptr_t)block, address);
        assert_int_equal(malloc_usable_size(block), usable);
        free(block);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_has_no_bytes),
        cmocka_unit_test(at_least_the_request),
        cmocka_unit_test(every_byte_is_writable),
        cmocka_unit_test(the_answer_is_stable),
        cmocka_unit_test(growth_within_the_usable_bytes_stays_in_place),
    };
    return library_is_linked() || cmocka_run_group_tests(tests, NULL, NULL);
}
