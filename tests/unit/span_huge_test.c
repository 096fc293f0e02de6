/* span/huge, span/big: free reads nothing; what calloc clears; which blocks get huge pages
 * (behaviours 11, 49). */
#include "unit.h"

#include "base/policy.h"
#include "base/tuning.h"
#include "checks/checks.h"
#include "os/os.h"
#include "span/big.h"

static struct big *big_of(const void *block)
{
    struct region *region = page_map_lookup(block);
    CHECK(region && region->kind == REGION_BIG && region->base == (const char *)block);
    CHECK(((struct big *)region)->dirty <= ((struct big *)region)->mapped);
    return (struct big *)region;
}

static void release_block(void *block)
{
    big_free(big_of(block), block, "free");
}

static void empty_cache(void)
{
    big_cache_evict(SIZE_MAX);
    assert_int_equal(big_stats().cached_bytes, 0);
}

/* ---- Zeroes: what was touched is cleared ----------------------------------------------------- */

/* Only the owner of a block knows what may be read of it. */
static void free_reads_nothing(void **state)
{
    (void)state;
    static const size_t sizes[] = {3 * MIB, 40 * MIB, 500 * MIB};
    policy.big_cache_mib = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        for (int zero = 0; zero <= 1; zero++) {
            char *block = big_alloc(0, sizes[i], 16, zero);
            memset(block, 'x', 2 * MIB);
            assert_true(os_make_inaccessible(block, sizes[i]));
            release_block(block);
        }
    }
    policy.big_cache_mib = 64;
}

/* In MiB; pages that were only read take no memory. */
static long resident_mib(void)
{
    char text[100] = "";
    assert_true(os_read_file("/proc/self/statm", text, sizeof text - 1));
    return strtol(strchr(text, ' '), NULL, 10) * (long)os_page_size() / (long)MIB;
}

/* Zeroes come from the system where little of a block was touched, and else from a look at all of
 * it, which neither gives memory back nor gives untouched pages some. */
static void clearing_takes_the_cheaper_way(void **state)
{
    (void)state;
    static const struct {
        size_t size, touched;
        bool swept;
    } uses[] = {
        {8 * MIB, 4 * KIB, false},  {8 * MIB, 8 * MIB, true},   {8 * MIB, 2 * MIB, true},
        {3 * MIB, MIB, true},       {15 * MIB, 6 * MIB, true},  {48 * MIB, MIB, false},
        {48 * MIB, 16 * MIB, true}, {48 * MIB, 48 * MIB, true}, {3 * MIB, 8 * KIB, false},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(uses); i++) {
        size_t size = uses[i].size, touched = uses[i].touched;
        for (size_t at = 0; at <= size - touched; at += size_max((size - touched) / 2, 4 * KIB)) {
            empty_cache();
            char *block = big_alloc(0, size, 16, true);
            memset(block + at, 'x', touched);
            release_block(block);
            uint64_t advice = os_counts[OS_MADVISE];
            long resident = resident_mib();
            assert_ptr_equal(big_alloc(0, size, 16, true), block);
            assert_int_equal(os_counts[OS_MADVISE] - advice, uses[i].swept ? 0 : 1);
            /* ThreadSanitizer keeps notes of what is read. */
            if (!HAKMEM_SANITIZE_THREAD)
                assert_in_range(resident_mib() + 1, 0, resident + 2);
            assert_true(unit_all_bytes(block, size, 0));
            release_block(block);
        }
    }
    empty_cache();
}

/* What was swept stays so, until hardly any of it is touched: neither takes a fault a page. */
static void swept_blocks_stay_so(void **state)
{
    (void)state;
    enum { SIZE = 6 * MIB, ROUNDS = 20 };
    empty_cache();
    char *block = big_alloc(0, SIZE, 16, true);
    memset(block, 'x', SIZE);
    for (int i = 0; i < ROUNDS; i++) {
        release_block(block);
        uint64_t advice = os_counts[OS_MADVISE];
        assert_ptr_equal(big_alloc(0, SIZE, 16, true), block);
        assert_int_equal(os_counts[OS_MADVISE], advice);
        assert_true(unit_all_bytes(block, SIZE, 0));
        memset(block + (size_t)i * 100 * KIB, 'x', SIZE / 100);
    }
    for (int i = 0; i <= SWEEPS; i++) {
        release_block(block);
        uint64_t advice = os_counts[OS_MADVISE];
        assert_ptr_equal(big_alloc(0, SIZE, 16, true), block);
        assert_true(unit_all_bytes(block, SIZE, 0));
        block[0] = 1;
        assert_true(os_counts[OS_MADVISE] == advice);
    }
    release_block(block);
    uint64_t advice = os_counts[OS_MADVISE];
    assert_ptr_equal(big_alloc(0, SIZE, 16, true), block);
    assert_int_equal(os_counts[OS_MADVISE] - advice, 1);
    release_block(block);
    empty_cache();
}

/* ---- Huge pages: none but where all of a block will be touched ------------------------------- */

static bool is_huge(const void *block)
{
    return big_of(block)->huge;
}

/* Lets the allocator use a block again that was used whole, or at one end. */
static void show_block(size_t size, bool dense)
{
    long bound = policy.big_cache_mib;
    policy.big_cache_mib = 1024;
    empty_cache();
    char *block = big_alloc(0, size, 16, true);
    memset(block, 'x', dense ? size : 4096);
    release_block(block);
    assert_ptr_equal(big_alloc(0, size, 16, false), block);
    release_block(block);
    policy.big_cache_mib = bound;
    empty_cache();
}

static void forget_blocks(void)
{
    for (int i = 0; i < 20; i++)
        show_block(4 * MIB, false);
}

/* Where the system gives huge pages unasked, long blocks have them without proof. */
static void skip_unasked(void)
{
    if (os_gives_huge_pages())
        skip();
}

static void huge_pages_need_proof(void **state)
{
    (void)state;
    skip_unasked();
    policy.big_cache_mib = 0;
    forget_blocks();
    char *block = big_alloc(0, 64 * MIB, 16, false);
    assert_false(is_huge(block));
    release_block(block);
    /* Twice as many bytes as one block was seen to use, however often: no more. */
    for (int times = 1; times <= 20; times += 19) {
        for (int i = 0; i < times; i++)
            show_block(16 * MIB, true);
        char *first = big_alloc(0, 32 * MIB, 16, false),
             *second = big_alloc(0, 32 * MIB, 16, false);
        assert_true(is_huge(first));
        assert_int_equal((uintptr_t)first % REGION_SIZE, 0);
        assert_false(is_huge(second));
        release_block(first);
        release_block(second);
    }
    /* Trust that was right comes back, trust that was wrong goes. */
    show_block(32 * MIB, true);
    char *first = big_alloc(0, 64 * MIB, 16, false);
    assert_true(is_huge(first));
    release_block(first);
    show_block(32 * MIB, true);
    show_block(8 * MIB, false);
    first = big_alloc(0, 32 * MIB, 16, false);
    assert_false(is_huge(first));
    release_block(first);
    policy.big_cache_mib = 64;
}

static void little_gets_no_huge_pages(void **state)
{
    (void)state;
    policy.big_cache_mib = 0;
    show_block(64 * MIB, true);
    assert_int_equal(big_stats().live_bytes, 0);
    char *block = big_alloc(0, 15 * MIB, 16, false);
    assert_false(is_huge(block));
    release_block(block);
    policy.big_cache_mib = 64;
}

/* Filters of system calls may kill for such advice. */
static void no_advice_without_the_option(void **state)
{
    (void)state;
    policy.big_cache_mib = 0;
    show_block(64 * MIB, true);
    policy.huge_pages = 0;
    uint64_t advice = os_counts[OS_MADVISE];
    char *block = big_alloc(0, 32 * MIB, 16, false);
    assert_false(is_huge(block));
    assert_non_null(block = big_resize(big_of(block), 48 * MIB));
    assert_false(is_huge(block));
    release_block(block);
    assert_int_equal(os_counts[OS_MADVISE], advice);
    policy.huge_pages = 1;
    policy.big_cache_mib = 64;
}

/* What was filled before it grows will be filled again, as far as it was. */
static void a_block_that_grows_proves_itself(void **state)
{
    (void)state;
    skip_unasked();
    policy.big_cache_mib = 0;
    forget_blocks();
    char *much = big_alloc(0, 16 * MIB, 16, false), *block = big_alloc(0, 16 * MIB, 16, false);
    memset(block, 'x', 16 * MIB);
    assert_non_null(much = big_resize(big_of(much), 64 * MIB));
    assert_non_null(block = big_resize(big_of(block), 32 * MIB));
    assert_false(is_huge(much));
    assert_true(is_huge(block));
    assert_true(unit_all_bytes(block, 16 * MIB, 'x'));
    assert_non_null(block = big_resize(big_of(block), 200 * MIB));
    assert_true(is_huge(block));
    assert_true(unit_all_bytes(block, 16 * MIB, 'x'));
    assert_true(unit_all_bytes(block + 16 * MIB, 184 * MIB, 0));
    release_block(much);
    release_block(block);
    policy.big_cache_mib = 64;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_reads_nothing),
        cmocka_unit_test(clearing_takes_the_cheaper_way),
        cmocka_unit_test(swept_blocks_stay_so),
        cmocka_unit_test(huge_pages_need_proof),
        cmocka_unit_test(little_gets_no_huge_pages),
        cmocka_unit_test(no_advice_without_the_option),
        cmocka_unit_test(a_block_that_grows_proves_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
