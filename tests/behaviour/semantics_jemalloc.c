/* Owns the tests of jemalloc's calls of blocks: behaviour 57. What its manual says of them holds,
 * and their blocks mix with those of malloc. */
#include "semantics_support.h"

#include "jemalloc.h"

static const size_t sizes[] = {1,     8,      100,     1000,    1025,        4097,   33000,
                               70000, 300000, 1 * MIB, 2 * MIB, 2 * MIB + 1, 5 * MIB};
static const size_t alignments[] = {1, 8, 16, 64, 256, 4096, 65536, 2 * MIB, 8 * MIB};

static void blocks_have_what_the_flags_say(void **state)
{
    (void)state;
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        for (size_t a = 0; a < COUNT_OF(alignments); a++) {
            int flags = MALLOCX_ALIGN(alignments[a]);
            assert_true(nallocx(sizes[s], flags) >= sizes[s]);
            for (int zero = 0; zero <= MALLOCX_ZERO; zero += MALLOCX_ZERO) {
                unsigned char *block = mallocx(sizes[s], flags | zero);
                assert_non_null(block);
                assert_true(is_aligned(block, alignments[a]));
                size_t real = sallocx(block, flags);
                assert_true(real >= nallocx(sizes[s], flags));
                assert_int_equal(real, malloc_usable_size(block));
                if (zero)
                    assert_true(is_zero(block, real));
                memset(block, 0xa5, real);
                if (a % 2)
                    sdallocx(block, sizes[s], flags);
                else
                    dallocx(block, flags);
            }
        }
    }
}

/* Arenas and thread caches are named in the upper bits, and change nothing. */
static void arenas_and_caches_are_taken(void **state)
{
    (void)state;
    int flags = MALLOCX_ARENA(3) | MALLOCX_TCACHE_NONE | MALLOCX_ALIGN(128) | MALLOCX_ZERO;
    char *block = mallocx(1000, flags);
    assert_true(is_aligned(block, 128) && is_zero(block, 1000));
    block = rallocx(block, 2000, MALLOCX_ARENA(7) | MALLOCX_TCACHE(4));
    assert_non_null(block);
    dallocx(block, MALLOCX_TCACHE_NONE);
    assert_int_equal(nallocx(1000, MALLOCX_ARENA(3)), nallocx(1000, 0));
}

/* The hardened library has no other arena, as there is no other cache, but Redis 8 ends where it
 * has not one of each for its scripts, and where there are no figures of them. */
static void arenas_and_caches_are_made(void **state)
{
    (void)state;
    static const char *const figures[] = {
        "small.allocated", "large.allocated", "pactive", "pmuzzy", "resident"};
    unsigned arena = 77, cache = 77;
    size_t length = sizeof arena;
    assert_int_equal(mallctl("arenas.create", &arena, &length, NULL, 0), 0);
    assert_int_equal(mallctl("tcache.create", &cache, &length, NULL, 0), 0);
    int flags = (int)(MALLOCX_ARENA(arena) | MALLOCX_TCACHE(cache));
    void *block = rallocx(mallocx(100, flags), 200, flags);
    assert_non_null(block);
    for (size_t i = 0; i < 2 * COUNT_OF(figures); i++) {
        char name[64];
        size_t figure = SIZE_MAX, bytes = sizeof figure;
        snprintf(name, sizeof name, "stats.arenas.%u.%s", i % 2 ? arena : 4096, figures[i / 2]);
        assert_int_equal(mallctl(name, &figure, &bytes, NULL, 0), 0);
        assert_true(i > 1 || figure >= 200);
    }
    dallocx(block, flags);
}

static void blocks_mix_with_those_of_malloc(void **state)
{
    (void)state;
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        dallocx(malloc(sizes[s]), 0);
        free(mallocx(sizes[s], MALLOCX_ZERO));
        sdallocx(realloc(mallocx(sizes[s], 0), sizes[s] * 2), sizes[s] * 2, 0);
        free(rallocx(calloc(1, sizes[s]), sizes[s] * 3, 0));
    }
}

/* From the real size that a block had, all is zero up to the real size that it gets. */
static void growing_keeps_bytes_and_zeroes_the_rest(void **state)
{
    (void)state;
    for (size_t from = 0; from < COUNT_OF(sizes); from++) {
        for (size_t to = 0; to < COUNT_OF(sizes); to++) {
            for (size_t a = 0; a < COUNT_OF(alignments); a += 3) {
                int flags = MALLOCX_ALIGN(alignments[a]) | MALLOCX_ZERO;
                unsigned char *block = mallocx(sizes[from], flags);
                size_t before = sallocx(block, 0);
                assert_non_null(block);
                pattern_fill(block, before, 3);
                block = rallocx(block, sizes[to], flags);
                assert_non_null(block);
                assert_true(is_aligned(block, alignments[a]));
                size_t after = sallocx(block, 0);
                assert_true(after >= sizes[to]);
                assert_true(pattern_holds(block, before < sizes[to] ? before : sizes[to], 3));
                if (after > before)
                    assert_true(is_zero(block + before, after - before));
                dallocx(block, flags);
            }
        }
    }
}

/* A block that was aligned by chance is not kept where it is wrong. */
static void growing_comes_to_an_alignment(void **state)
{
    (void)state;
    for (int round = 0; round < 100; round++) {
        char *block = mallocx(48, 0);
        pattern_fill(block, 48, 9);
        block = rallocx(block, 48, MALLOCX_LG_ALIGN(12));
        assert_true(is_aligned(block, 4096) && pattern_holds(block, 48, 9));
        block = rallocx(block, 20, MALLOCX_LG_ALIGN(6));
        assert_true(is_aligned(block, 64) && pattern_holds(block, 20, 9));
        dallocx(block, 0);
    }
}

static void resizing_in_place_tells_the_real_size(void **state)
{
    (void)state;
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        char *block = mallocx(sizes[s], 0);
        size_t before = sallocx(block, 0);
        pattern_fill(block, before, 4);
        static const size_t wishes[] = {1, 64, 100000, 400000, MIB, 3 * MIB, SIZE_MAX / 4};
        for (size_t w = 0; w < COUNT_OF(wishes); w++) {
            size_t real = xallocx(block, wishes[w], w % 2 ? SIZE_MAX - wishes[w] : 100, 0);
            assert_int_equal(real, sallocx(block, 0));
            size_t kept = real < before ? real : before;
            assert_true(pattern_holds(block, kept, 4));
            before = kept;
        }
        dallocx(block, 0);
    }
}

/* What lies behind a long block may be free: then it becomes longer where it is. */
static void long_blocks_grow_in_place(void **state)
{
    (void)state;
    unsigned char *block = mallocx(2 * MIB - 64 * KIB, 0);
    long hardened = 0;
    memset(block, 1, 256 * KIB);
    assert_int_equal(hakmem_option_get("hardened", &hardened), 0);
    if (hardened) {
        /* There every block keeps its length. */
        assert_int_equal(xallocx(block, 256 * KIB, 0, 0), 2 * MIB - 64 * KIB);
        dallocx(block, 0);
        return;
    }
    assert_int_equal(xallocx(block, 256 * KIB, 0, 0), 256 * KIB);
    size_t real = xallocx(block, MIB, 512 * KIB, MALLOCX_ZERO);
    assert_true(real >= MIB + 512 * KIB);
    assert_int_equal(real, sallocx(block, 0));
    assert_true(block[256 * KIB - 1] == 1 && is_zero(block + 256 * KIB, real - 256 * KIB));
    memset(block, 2, real);
    dallocx(block, 0);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    static const size_t impossible[] = {SIZE_MAX, SIZE_MAX - 4096, PTRDIFF_MAX, (size_t)1 << 62};
    char *block = mallocx(1000, 0);
    pattern_fill(block, 1000, 6);
    for (size_t i = 0; i < COUNT_OF(impossible); i++) {
        size_t size = opaque(impossible[i]);
        for (int flags = 0; flags <= 63; flags += 21) {
            assert_int_equal(nallocx(size, flags), 0);
            assert_null(mallocx(size, flags));
            assert_null(mallocx(size, flags | MALLOCX_ZERO));
            assert_null(rallocx(block, size, flags));
            assert_null(rallocx(block, size, flags | MALLOCX_ZERO));
            assert_true(xallocx(block, size, 0, flags) < size);
        }
    }
    assert_null(mallocx(1, MALLOCX_LG_ALIGN(63)));
    assert_int_equal(nallocx(1, MALLOCX_LG_ALIGN(63)), 0);
    assert_true(pattern_holds(block, 1000, 6));
    dallocx(block, 0);
}

/* jemalloc leaves these open; here nothing bad comes of them. */
static void nothing_is_harmless(void **state)
{
    (void)state;
    void *one = mallocx(0, 0), *other = mallocx(0, MALLOCX_ZERO);
    assert_true(one && other && one != other);
    assert_non_null(one = rallocx(one, 0, 0));
    dallocx(one, 0);
    dallocx(other, 0);
    dallocx(NULL, 0);
    sdallocx(NULL, 100, 0);
    assert_int_equal(sallocx(NULL, 0), 0);
    dallocx(rallocx(NULL, 100, MALLOCX_ZERO | MALLOCX_LG_ALIGN(7)), 0);
}

static void collect(void *argument, const char *text)
{
    strncat(argument, text, 64 * KIB - 1 - strlen(argument));
}

static void the_report_goes_where_it_is_sent(void **state)
{
    (void)state;
    static char report[64 * KIB];
    malloc_stats_print(collect, report, NULL);
    assert_ptr_equal(strstr(report, "hakmem "), report);
    report[0] = '\0';
    malloc_stats_print(collect, report, "gblxeJ");
    assert_ptr_equal(strstr(report, "{"), report);
    assert_non_null(strstr(report, "\"live_bytes\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_have_what_the_flags_say),
        cmocka_unit_test(arenas_and_caches_are_taken),
        cmocka_unit_test(arenas_and_caches_are_made),
        cmocka_unit_test(blocks_mix_with_those_of_malloc),
        cmocka_unit_test(growing_keeps_bytes_and_zeroes_the_rest),
        cmocka_unit_test(growing_comes_to_an_alignment),
        cmocka_unit_test(resizing_in_place_tells_the_real_size),
        cmocka_unit_test(long_blocks_grow_in_place),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(nothing_is_harmless),
        cmocka_unit_test(the_report_goes_where_it_is_sent),
    };
    return library_is_linked() || cmocka_run_group_tests(tests, NULL, NULL);
}
