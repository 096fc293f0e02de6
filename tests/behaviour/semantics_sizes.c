/* Owns the tests of impossible and empty sizes: behaviours 8, 9, 10 and 15.
 *
 * Sizes pass through opaque(), so that the compiler neither warns nor decides the outcome itself.
 */
#include "semantics_support.h"

#include <pthread.h>

/* behaviour 8 */
static void empty_blocks_are_unique(void **state)
{
    (void)state;
    enum { EACH = 200 };
    void *blocks[3 * EACH];
    for (size_t i = 0; i < EACH; i++) {
        blocks[3 * i] = malloc(opaque(0));
        blocks[3 * i + 1] = calloc(opaque(0), i);
        blocks[3 * i + 2] = realloc(NULL, opaque(0));
    }
    for (size_t i = 0; i < 3 * EACH; i++) {
        assert_non_null(blocks[i]);
        assert_true(is_aligned(blocks[i], 16));
        for (size_t j = 0; j < i; j++) {
            assert_ptr_not_equal(blocks[i], blocks[j]);
        }
    }
    for (size_t i = 0; i < 3 * EACH; i++) {
        free(blocks[i]);
    }
}

/* behaviour 8: the other ways to ask for nothing give a block too. */
static void empty_blocks_of_the_other_calls(void **state)
{
    (void)state;
    void *posix = NULL;
    assert_int_equal(posix_memalign(&posix, 64, opaque(0)), 0);
    void *blocks[] = {
        posix,
        calloc(7, opaque(0)),
        aligned_alloc(64, opaque(0)),
        memalign(64, opaque(0)),
        valloc(opaque(0)),
        reallocarray(NULL, opaque(0), 8),
        reallocarray(NULL, 8, opaque(0)),
    };
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
        assert_non_null(blocks[i]);
        for (size_t j = 0; j < i; j++) {
            assert_ptr_not_equal(blocks[i], blocks[j]);
        }
    }
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
        free(blocks[i]);
    }
}

/* The calls that take one size, in one shape. `old` is a live block of 100 bytes. */

static void *by_malloc(void *old, size_t size)
{
    (void)old;
    return malloc(size);
}

static void *by_calloc_one(void *old, size_t size)
{
    (void)old;
    return calloc(1, size);
}

static void *by_calloc_many(void *old, size_t size)
{
    (void)old;
    return calloc(size, 1);
}

static void *by_realloc(void *old, size_t size)
{
    return realloc(old, size);
}

static void *by_realloc_null(void *old, size_t size)
{
    (void)old;
    return realloc(NULL, size);
}

static void *by_reallocarray(void *old, size_t size)
{
    return reallocarray(old, size, 1);
}

static void *by_memalign(void *old, size_t size)
{
    (void)old;
    return memalign(64, size);
}

static void *by_memalign_page(void *old, size_t size)
{
    (void)old;
    return memalign(64 * KIB, size);
}

static void *by_aligned_alloc(void *old, size_t size)
{
    (void)old;
    return aligned_alloc(4096, size);
}

static void *by_valloc(void *old, size_t size)
{
    (void)old;
    return valloc(size);
}

static void *by_pvalloc(void *old, size_t size)
{
    (void)old;
    return pvalloc(size);
}

static void *(*const callers[])(void *, size_t) = {
    by_malloc,   by_calloc_one,    by_calloc_many,   by_realloc, by_realloc_null, by_reallocarray,
    by_memalign, by_memalign_page, by_aligned_alloc, by_valloc,  by_pvalloc,
};

static const size_t too_big[] = {
    (size_t)PTRDIFF_MAX + 1,
    (size_t)PTRDIFF_MAX + 2,
    (size_t)PTRDIFF_MAX + 4096,
    (size_t)PTRDIFF_MAX + 65536,
    SIZE_MAX / 2 + 4 * MIB,
    SIZE_MAX - 2 * MIB,
    SIZE_MAX - 2 * MIB + 1,
    SIZE_MAX - 65536,
    SIZE_MAX - 65535,
    SIZE_MAX - 4096,
    SIZE_MAX - 4095,
    SIZE_MAX - 4094,
    SIZE_MAX - 64,
    SIZE_MAX - 16,
    SIZE_MAX - 15,
    SIZE_MAX - 1,
    SIZE_MAX,
};

/* behaviour 9, and 13 for the block that a failed realloc leaves behind */
static void sizes_above_ptrdiff_max_fail(void **state)
{
    (void)state;
    size_t before = virtual_bytes();
    void *old = malloc(100);
    pattern_fill(old, 100, 3);
    for (size_t c = 0; c < COUNT_OF(callers); c++) {
        for (size_t s = 0; s < COUNT_OF(too_big); s++) {
            errno = ERRNO_MARK;
            assert_null(callers[c](old, opaque(too_big[s])));
            assert_int_equal(errno, ENOMEM);
        }
    }
    assert_true(pattern_holds(old, 100, 3));
    free(old);
    assert_true(virtual_bytes() < before + GIB);
}

/* behaviour 9: sizes that fit a ptrdiff_t, but no address space, fail the same way. */
static void sizes_beyond_the_address_space_fail(void **state)
{
    (void)state;
    static const size_t sizes[] = {
        PTRDIFF_MAX,        PTRDIFF_MAX - 1,     PTRDIFF_MAX - 15,      PTRDIFF_MAX - 4095,
        PTRDIFF_MAX - 4096, PTRDIFF_MAX - 65535, PTRDIFF_MAX - 2 * MIB, PTRDIFF_MAX - 4 * MIB,
        (size_t)1 << 62,    (size_t)1 << 57,     ((size_t)1 << 48) + 5,
    };
    size_t before = virtual_bytes();
    void *old = malloc(100);
    pattern_fill(old, 100, 4);
    for (size_t c = 0; c < COUNT_OF(callers); c++) {
        for (size_t s = 0; s < COUNT_OF(sizes); s++) {
            errno = ERRNO_MARK;
            assert_null(callers[c](old, opaque(sizes[s])));
            assert_int_equal(errno, ENOMEM);
        }
    }
    assert_true(pattern_holds(old, 100, 4));
    free(old);
    assert_true(virtual_bytes() < before + GIB);
}

/* behaviour 9: the failures above must not make a difference to what follows. */
static void work_goes_on_after_failures(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 10000; i++) {
        assert_null(malloc(opaque(SIZE_MAX - i)));
    }
    void *block = malloc(3 * MIB);
    assert_non_null(block);
    pattern_fill(block, 3 * MIB, 9);
    assert_true(pattern_holds(block, 3 * MIB, 9));
    free(block);
}

struct product {
    size_t count;
    size_t size;
};

static const struct product overflows[] = {
    {SIZE_MAX, 2},
    {2, SIZE_MAX},
    {SIZE_MAX, SIZE_MAX},
    {SIZE_MAX / 2 + 1, 2},
    {2, SIZE_MAX / 2 + 1},
    {SIZE_MAX / 16 + 1, 16},
    {16, SIZE_MAX / 16 + 2},
    {(size_t)1 << 32, (size_t)1 << 32},
    {((size_t)1 << 32) + 1, (size_t)1 << 32},
    {((size_t)1 << 33) + 1, ((size_t)1 << 31) + 1},
    {SIZE_MAX / 3 + 1, 3},
    {SIZE_MAX / 24 + 1, 24},
};

/* behaviour 10 */
static void calloc_overflow_fails(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(overflows); i++) {
        errno = ERRNO_MARK;
        assert_null(calloc(opaque(overflows[i].count), opaque(overflows[i].size)));
        assert_int_equal(errno, ENOMEM);
    }
}

/* behaviour 10 */
static void reallocarray_overflow_keeps_the_block(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 100, 5000, 100000, 3 * MIB};
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        void *old = malloc(sizes[s]);
        assert_non_null(old);
        size_t usable = malloc_usable_size(old);
        pattern_fill(old, usable, 7);
        for (size_t i = 0; i < COUNT_OF(overflows); i++) {
            errno = ERRNO_MARK;
            assert_null(reallocarray(old, opaque(overflows[i].count), opaque(overflows[i].size)));
            assert_int_equal(errno, ENOMEM);
            errno = ERRNO_MARK;
            assert_null(reallocarray(NULL, opaque(overflows[i].count), opaque(overflows[i].size)));
            assert_int_equal(errno, ENOMEM);
        }
        assert_int_equal(malloc_usable_size(old), usable);
        assert_true(pattern_holds(old, usable, 7));
        free(old);
    }
}

/* behaviour 10: products that do not overflow are served, also with large factors. */
static void products_without_overflow_are_served(void **state)
{
    (void)state;
    static const struct product products[] = {
        {1, 1}, {3, 5}, {1000, 24}, {24, 1000}, {65536, 48}, {1, 5 * MIB}, {5 * MIB, 1},
    };
    for (size_t i = 0; i < COUNT_OF(products); i++) {
        size_t bytes = products[i].count * products[i].size;
        unsigned char *zeroed = calloc(products[i].count, products[i].size);
        void *plain = reallocarray(NULL, products[i].count, products[i].size);
        assert_non_null(zeroed);
        assert_non_null(plain);
        assert_true(malloc_usable_size(zeroed) >= bytes);
        assert_true(malloc_usable_size(plain) >= bytes);
        assert_true(is_zero(zeroed, bytes));
        pattern_fill(plain, bytes, 2);
        plain = reallocarray(plain, products[i].count, products[i].size * 2);
        assert_non_null(plain);
        assert_true(pattern_holds(plain, bytes, 2));
        free(plain);
        free(zeroed);
    }
}

/* Allocates once in every tier and through every call; true when errno was left alone. */
static bool successes_keep_errno(void)
{
    static const size_t sizes[] = {0, 1, 500, 3000, 30000, 200000, MIB, 3 * MIB, 70 * MIB};
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        void *blocks[9];
        void *posix = NULL;
        errno = ERRNO_MARK;
        int result = posix_memalign(&posix, 64, sizes[s]);
        blocks[0] = posix;
        blocks[1] = malloc(sizes[s]);
        blocks[2] = calloc(1, sizes[s]);
        blocks[3] = realloc(NULL, sizes[s]);
        blocks[4] = memalign(8192, sizes[s]);
        blocks[5] = aligned_alloc(32, sizes[s]);
        blocks[6] = valloc(sizes[s]);
        blocks[7] = reallocarray(NULL, 1, sizes[s]);
        blocks[8] = memalign(4 * MIB, sizes[s]);
        blocks[1] = realloc(blocks[1], sizes[s] * 2 + 1);
        (void)malloc_usable_size(blocks[1]);
        bool kept = errno == ERRNO_MARK && result == 0;
        for (size_t i = 0; i < COUNT_OF(blocks); i++) {
            kept = kept && blocks[i] != NULL;
            free(blocks[i]);
        }
        if (!kept) {
            return false;
        }
    }
    return true;
}

/* behaviour 15 */
static void success_leaves_errno_alone(void **state)
{
    (void)state;
    assert_true(successes_keep_errno());
}

static void *first_allocation_of_a_thread(void *argument)
{
    (void)argument;
    errno = ERRNO_MARK;
    void *block = malloc(100);
    bool kept = errno == ERRNO_MARK;
    free(block);
    return (void *)(uintptr_t)(kept && block != NULL);
}

/* behaviour 15: also where a thread sets up its heap. */
static void first_success_of_a_thread_leaves_errno_alone(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        pthread_t thread;
        void *kept = NULL;
        assert_int_equal(pthread_create(&thread, NULL, first_allocation_of_a_thread, NULL), 0);
        assert_int_equal(pthread_join(thread, &kept), 0);
        assert_non_null(kept);
    }
}

static void succeed_where_advice_fails(void)
{
    if (!fail_syscall(SYS_madvise, EINVAL) || !fail_syscall(SYS_mremap, ENOMEM)) {
        _exit(CHILD_SKIPPED);
    }
    CHILD_CHECK(successes_keep_errno());
}

/* behaviour 15: a system call that failed on the way to success must not show. */
static void success_leaves_errno_alone_when_the_kernel_refuses_help(void **state)
{
    (void)state;
    run_in_child(succeed_where_advice_fails);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_blocks_are_unique),
        cmocka_unit_test(empty_blocks_of_the_other_calls),
        cmocka_unit_test(sizes_above_ptrdiff_max_fail),
        cmocka_unit_test(sizes_beyond_the_address_space_fail),
        cmocka_unit_test(work_goes_on_after_failures),
        cmocka_unit_test(calloc_overflow_fails),
        cmocka_unit_test(reallocarray_overflow_keeps_the_block),
        cmocka_unit_test(products_without_overflow_are_served),
        cmocka_unit_test(success_leaves_errno_alone),
        cmocka_unit_test(first_success_of_a_thread_leaves_errno_alone),
        cmocka_unit_test(success_leaves_errno_alone_when_the_kernel_refuses_help),
    };
    return library_is_linked() || cmocka_run_group_tests(tests, NULL, NULL);
}
