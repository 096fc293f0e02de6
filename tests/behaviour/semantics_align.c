/* Owns the tests of alignment: behaviours 16, 17, 18, 19, 20 and 23.
 */
#include "semantics_support.h"

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* behaviour 16 */
static void every_size_is_aligned_to_16(void **state)
{
    (void)state;
    void *held[64] = {NULL};
    size_t turn = 0;
    for (size_t size = 0; size <= 6 * MIB; size += size < 4200 ? 1 : size / 97) {
        void *blocks[4] = {malloc(size), calloc(1, size), realloc(NULL, size), malloc(size)};
        blocks[3] = realloc(blocks[3], size + size / 2 + 1);
        for (size_t i = 0; i < COUNT_OF(blocks); i++) {
            assert_non_null(blocks[i]);
            assert_true(is_aligned(blocks[i], 16));
            /* Holding some blocks keeps the next ones from landing on the same address. */
            void **place = &held[turn++ % COUNT_OF(held)];
            free(*place);
            *place = blocks[i];
        }
    }
    for (size_t i = 0; i < COUNT_OF(held); i++) {
        free(held[i]);
    }
}

static const size_t matrix_sizes[] = {
    0,      1,      8,    15,      16,          17,      48,          64,      100,   500,
    1000,   1024,   1025, 3000,    4096,        4097,    10000,       32768,   32769, 65536,
    100000, 500000, MIB,  1500000, 2 * MIB - 1, 2 * MIB, 2 * MIB + 1, 5 * MIB,
};

/* behaviours 16, 18: three blocks of each alignment and size live at once, all writable. */
static void alignment_matrix(void **state)
{
    (void)state;
    for (size_t alignment = 8; alignment <= 64 * MIB; alignment *= 2) {
        for (size_t s = 0; s < COUNT_OF(matrix_sizes); s++) {
            size_t size = matrix_sizes[s];
            void *blocks[3] = {aligned_alloc(alignment, size), memalign(alignment, size), NULL};
            assert_int_equal(posix_memalign(&blocks[2], alignment, size), 0);
            for (unsigned i = 0; i < COUNT_OF(blocks); i++) {
                assert_non_null(blocks[i]);
                assert_true(is_aligned(blocks[i], alignment));
                assert_true(is_aligned(blocks[i], 16));
                assert_true(malloc_usable_size(blocks[i]) >= size);
                pattern_fill(blocks[i], size < 70000 ? size : 70000, i);
            }
            for (unsigned i = 0; i < COUNT_OF(blocks); i++) {
                assert_true(pattern_holds(blocks[i], size < 70000 ? size : 70000, i));
                free(blocks[i]);
            }
        }
    }
}

/* behaviour 16: many aligned blocks, so that each place of a slab is met once. */
static void many_aligned_blocks(void **state)
{
    (void)state;
    enum { BLOCKS = 600 };
    static void *blocks[BLOCKS];
    for (size_t alignment = 32; alignment <= 8192; alignment *= 2) {
        for (unsigned i = 0; i < BLOCKS; i++) {
            size_t size = 1 + (i * 37u) % (2 * alignment);
            blocks[i] = memalign(alignment, size);
            assert_non_null(blocks[i]);
            assert_true(is_aligned(blocks[i], alignment));
            pattern_fill(blocks[i], malloc_usable_size(blocks[i]), i);
        }
        for (unsigned i = 0; i < BLOCKS; i++) {
            assert_true(pattern_holds(blocks[i], malloc_usable_size(blocks[i]), i));
            free(blocks[i]);
        }
    }
}

/* behaviour 17 */
static void memalign_rounds_the_alignment_up(void **state)
{
    (void)state;
    static const struct {
        size_t asked;
        size_t given;
    } cases[] = {
        {0, 16},
        {1, 16},
        {3, 16},
        {8, 16},
        {17, 32},
        {24, 32},
        {33, 64},
        {48, 64},
        {100, 128},
        {129, 256},
        {1000, 1024},
        {1025, 2048},
        {3000, 4096},
        {4097, 8192},
        {12345, 16384},
        {65537, 131072},
        {3 * MIB, 4 * MIB},
    };
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        void *blocks[20];
        for (size_t i = 0; i < COUNT_OF(blocks); i++) {
            errno = ERRNO_MARK;
            blocks[i] = memalign(opaque(cases[c].asked), 10 + i * 20);
            assert_non_null(blocks[i]);
            assert_int_equal(errno, ERRNO_MARK);
            assert_true(is_aligned(blocks[i], cases[c].given));
        }
        for (size_t i = 0; i < COUNT_OF(blocks); i++) {
            free(blocks[i]);
        }
    }
}

/* behaviour 17 */
static void memalign_refuses_what_cannot_be_rounded(void **state)
{
    (void)state;
    static const size_t alignments[] = {
        SIZE_MAX / 2 + 2, SIZE_MAX / 2 + 3, SIZE_MAX - 4096, SIZE_MAX - 1, SIZE_MAX,
    };
    for (size_t i = 0; i < COUNT_OF(alignments); i++) {
        errno = ERRNO_MARK;
        assert_null(memalign(opaque(alignments[i]), 10));
        assert_int_equal(errno, EINVAL);
    }
}

/* behaviours 17, 23: powers of two that no address space can honour. */
static void alignments_beyond_the_address_space_fail(void **state)
{
    (void)state;
    size_t before = virtual_bytes();
    for (unsigned bit = 48; bit < 64; bit++) {
        void *untouched = &before;
        errno = ERRNO_MARK;
        assert_null(memalign(opaque((size_t)1 << bit), 10));
        assert_int_equal(errno, ENOMEM);
        errno = ERRNO_MARK;
        assert_null(aligned_alloc(opaque((size_t)1 << bit), 10));
        assert_int_equal(errno, ENOMEM);
        assert_int_equal(posix_memalign(&untouched, opaque((size_t)1 << bit), 10), ENOMEM);
        assert_ptr_equal(untouched, &before);
    }
    assert_true(virtual_bytes() < before + GIB);
}

/* behaviour 18 */
static void aligned_alloc_wants_a_power_of_two(void **state)
{
    (void)state;
    static const size_t bad[] = {
        0, 3, 5, 6, 7, 12, 24, 48, 100, 1000, 4097, 3 * MIB, SIZE_MAX / 2 + 2, SIZE_MAX,
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        for (size_t size = 0; size < 5 * MIB; size = size * 7 + 1) {
            errno = ERRNO_MARK;
            assert_null(aligned_alloc(opaque(bad[i]), size));
            assert_int_equal(errno, EINVAL);
        }
    }
}

/* behaviour 18: small powers of two are fine, and the size need not be a multiple. */
static void aligned_alloc_takes_any_size(void **state)
{
    (void)state;
    for (size_t alignment = 1; alignment <= 65536; alignment *= 2) {
        for (size_t size = 1; size < 200000; size = size * 3 + 1) {
            void *block = aligned_alloc(alignment, size);
            assert_non_null(block);
            assert_true(is_aligned(block, alignment));
            pattern_fill(block, size, 1);
            free(block);
        }
    }
}

/* behaviour 19 */
static void posix_memalign_refuses_bad_alignments(void **state)
{
    (void)state;
    static const size_t bad[] = {
        0, 1, 2, 3, 4, 5, 7, 9, 12, 24, 40, 100, 4095, 3 * MIB, SIZE_MAX / 2 + 2, SIZE_MAX,
    };
    static const size_t sizes[] = {0, 1, 100, 5000, 3 * MIB, SIZE_MAX};
    for (size_t b = 0; b < COUNT_OF(bad); b++) {
        for (size_t s = 0; s < COUNT_OF(sizes); s++) {
            void *untouched = &errno;
            errno = ERRNO_MARK;
            assert_int_equal(posix_memalign(&untouched, opaque(bad[b]), opaque(sizes[s])), EINVAL);
            assert_ptr_equal(untouched, &errno);
            assert_int_equal(errno, ERRNO_MARK);
        }
    }
}

/* behaviour 19 */
static void posix_memalign_too_big(void **state)
{
    (void)state;
    static const size_t sizes[] = {
        SIZE_MAX,    SIZE_MAX - 15,      SIZE_MAX - 4096, (size_t)PTRDIFF_MAX + 1,
        PTRDIFF_MAX, PTRDIFF_MAX - 4096,
    };
    for (size_t alignment = 8; alignment <= 64 * MIB; alignment *= 2) {
        for (size_t s = 0; s < COUNT_OF(sizes); s++) {
            void *untouched = &errno;
            errno = ERRNO_MARK;
            assert_int_equal(posix_memalign(&untouched, alignment, opaque(sizes[s])), ENOMEM);
            assert_ptr_equal(untouched, &errno);
            assert_int_equal(errno, ENOMEM);
        }
    }
}

/* behaviour 20 */
static void page_aligned_calls(void **state)
{
    (void)state;
    size_t page = page_size();
    void *held[200];
    for (size_t i = 0; i < COUNT_OF(held); i += 2) {
        size_t size = i == 0 ? 0 : i * i * 7;
        held[i] = valloc(opaque(size));
        held[i + 1] = pvalloc(opaque(size));
        assert_non_null(held[i]);
        assert_non_null(held[i + 1]);
        assert_true(is_aligned(held[i], page));
        assert_true(is_aligned(held[i + 1], page));
        assert_true(malloc_usable_size(held[i]) >= size);
        assert_true(malloc_usable_size(held[i + 1]) >= (size + page - 1) / page * page);
        memset(held[i + 1], 1, (size + page - 1) / page * page);
    }
    for (size_t i = 0; i < COUNT_OF(held); i++) {
        free(held[i]);
    }
}

/* behaviour 20: rounding up must not wrap around to a small block. */
static void pvalloc_does_not_wrap(void **state)
{
    (void)state;
    size_t page = page_size();
    const size_t sizes[] = {
        SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - page + 2, SIZE_MAX - page + 1, SIZE_MAX - page};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        errno = ERRNO_MARK;
        assert_null(pvalloc(opaque(sizes[i])));
        assert_int_equal(errno, ENOMEM);
        errno = ERRNO_MARK;
        assert_null(valloc(opaque(sizes[i])));
        assert_int_equal(errno, ENOMEM);
    }
}

/* True when the call worked with a block of that alignment, or failed with ENOMEM. */
static bool works_or_fails_cleanly(void *block, size_t alignment, size_t size)
{
    if (block == NULL) {
        return errno == ENOMEM;
    }
    bool good = is_aligned(block, alignment) && malloc_usable_size(block) >= size;
    ((char *)block)[0] = 1;
    ((char *)block)[size / 2] = 1;
    ((char *)block)[size - 1] = 1;
    free(block);
    return good;
}

/* behaviour 23 */
static void gibibyte_alignments(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 5000, 100000, 3 * MIB, GIB, GIB + 1};
    (void)hakmem_purge();
    size_t before = virtual_bytes();
    for (size_t alignment = 128 * MIB; alignment <= 64 * GIB; alignment *= 2) {
        for (size_t s = 0; s < COUNT_OF(sizes); s++) {
            void *block = NULL;
            assert_true(
                works_or_fails_cleanly(aligned_alloc(alignment, sizes[s]), alignment, sizes[s]));
            assert_true(
                works_or_fails_cleanly(memalign(alignment - 3, sizes[s]), alignment, sizes[s]));
            errno = posix_memalign(&block, alignment, sizes[s]);
            assert_true(works_or_fails_cleanly(block, alignment, sizes[s]));
        }
    }
    /* What was cut off to reach the alignment has gone back. */
    (void)hakmem_purge();
    assert_true(virtual_bytes() < before + 4 * GIB);
}

/* behaviour 23: terabytes are reserved or refused, and never touched by the library. */
static void tebibyte_sizes(void **state)
{
    (void)state;
    (void)hakmem_purge();
    size_t virtual_before = virtual_bytes();
    size_t resident_before = resident_bytes();
    for (size_t size = TIB; size <= 64 * TIB; size *= 2) {
        assert_true(works_or_fails_cleanly(malloc(opaque(size)), 16, size));
        assert_true(works_or_fails_cleanly(calloc(opaque(size), 1), 16, size));
        assert_true(works_or_fails_cleanly(memalign(GIB, opaque(size)), GIB, size));
        char *block = malloc(100);
        assert_non_null(block);
        pattern_fill(block, 100, 8);
        char *grown = realloc(block, opaque(size));
        assert_true(pattern_holds(grown != NULL ? grown : block, 100, 8));
        free(grown != NULL ? grown : block);
    }
    (void)hakmem_purge();
    assert_true(virtual_bytes() < virtual_before + 4 * GIB);
    assert_true(resident_bytes() < resident_before + 64 * MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_is_aligned_to_16),
        cmocka_unit_test(alignment_matrix),
        cmocka_unit_test(many_aligned_blocks),
        cmocka_unit_test(memalign_rounds_the_alignment_up),
        cmocka_unit_test(memalign_refuses_what_cannot_be_rounded),
        cmocka_unit_test(alignments_beyond_the_address_space_fail),
        cmocka_unit_test(aligned_alloc_wants_a_power_of_two),
        cmocka_unit_test(aligned_alloc_takes_any_size),
        cmocka_unit_test(posix_memalign_refuses_bad_alignments),
        cmocka_unit_test(posix_memalign_too_big),
        cmocka_unit_test(page_aligned_calls),
        cmocka_unit_test(pvalloc_does_not_wrap),
        cmocka_unit_test(gibibyte_alignments),
        cmocka_unit_test(tebibyte_sizes),
    };
    return library_is_linked() || cmocka_run_group_tests(tests, NULL, NULL);
}
