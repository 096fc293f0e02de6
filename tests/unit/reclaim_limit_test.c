/* reclaim/limit: near a limit, what is free goes back before more becomes resident. */
#include "unit.h"

#include "api/alloc.h"
#include "api/options.h"
#include "observe/walk.h"
#include "os/limits.h"
#include "reclaim/limit.h"
#include "reclaim/tick.h"
#include "span/big_cache.h"
#include "span/page_heap.h"

enum { BLOCKS = 64 * 1024 };

static char *blocks[BLOCKS];

static size_t free_bytes(void)
{
    return page_heap_stats().dirty_free_pages * PAGE_SIZE + big_cache_bytes();
}

static size_t resident_mib(void)
{
    return os_footprint_read("").resident_bytes / MIB;
}

static size_t fill(size_t bytes, size_t size)
{
    size_t count = bytes / size;
    assert_true(count <= BLOCKS);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = alloc(size);
        CHECK(blocks[i]);
        memset(blocks[i], 1, size);
    }
    return count;
}

static void empty(size_t count)
{
    for (size_t i = 0; i < count; i++)
        release(blocks[i]);
}

static int set_up(void **state)
{
    (void)state;
    policy.purge_delay_ms = 3600000; /* no tick gets there first */
    policy.retain_percent = 1000;
    policy.huge_pages = 0;
    reclaim_everything();
    return 0;
}

/* What is resident is a sanitizer's more than the allocator's. */
static void skip_sanitized(void)
{
    if (HAKMEM_SANITIZE_THREAD || HAKMEM_SANITIZE_ADDRESS)
        skip();
}

static int tear_down(void **state)
{
    (void)state;
    assert_int_equal(options_set("limit_mib", 0), 0);
    return 0;
}

static void without_a_limit_nothing_is_purged_for_it(void **state)
{
    (void)state;
    uint64_t before = limit_purges();
    if (pressure_limited_flag)
        skip(); /* the system sets one here */
    assert_int_equal(limit_bytes(), 0);
    empty(fill(32 * MIB, 1000));
    empty(fill(32 * MIB, 20000));
    assert_int_equal(limit_purges(), before);
}

static void blocks_of_changing_sizes_stay_below(void **state)
{
    (void)state;
    skip_sanitized();
    static const size_t sizes[] = {1000, 64 * KIB, 3 * MIB, 700, 200 * KIB, 5 * MIB, 30000};
    size_t limit = resident_mib() + 31;
    uint64_t before = limit_purges();
    assert_int_equal(options_set("limit_mib", (long)limit), 0);
    if (limit_bytes() != limit * MIB)
        skip(); /* the system's is lower */
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        size_t count = fill(24 * MIB, sizes[i]);
        CHECK(resident_mib() < limit);
        empty(count);
        CHECK(resident_mib() < limit);
        walk_all();
    }
    assert_true(limit_purges() > before);
}

/* More than the limit is in use: all that is free goes, and the program goes on. */
static void beyond_the_limit_little_stays_free(void **state)
{
    (void)state;
    skip_sanitized();
    assert_int_equal(options_set("limit_mib", (long)resident_mib() + 16), 0);
    size_t count = fill(48 * MIB, 3 * MIB);
    for (size_t i = 0; i < count; i += 2) {
        release(blocks[i]);
        blocks[i] = alloc(100000);
        memset(blocks[i], 1, 100000);
    }
    char *more = alloc(4 * MIB);
    CHECK(more);
    assert_true(free_bytes() <= 4 * MIB);
    release(more);
    empty(count);
    walk_all();
}

/* The limit comes after the memory was freed. */
static void a_tick_goes_below_a_limit_that_is_new(void **state)
{
    (void)state;
    skip_sanitized();
    size_t before = resident_mib();
    empty(fill(30 * MIB, 3 * MIB));
    assert_true(free_bytes() >= 16 * MIB);
    assert_int_equal(options_set("limit_mib", (long)before + 8), 0);
    limit_tick(1000000);
    assert_true(resident_mib() < before + 8);
    walk_all();
}

static void a_child_of_fork_keeps_to_it(void **state)
{
    (void)state;
    skip_sanitized();
    size_t limit = resident_mib() + 40;
    assert_int_equal(options_set("limit_mib", (long)limit), 0);
    pid_t child = fork();
    if (child == 0) {
        empty(fill(24 * MIB, 1000));
        size_t count = fill(24 * MIB, 3 * MIB);
        CHECK(resident_mib() < limit);
        empty(count);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* Addresses, too: what is mapped and free is unmapped before the limit is reached. */
static void near_the_limit_on_addresses_mappings_go(void **state)
{
    (void)state;
    skip_sanitized();
    pid_t child = fork();
    if (child == 0) {
        size_t now = os_footprint_read("").address_bytes;
        const struct rlimit limit = {now + 160 * MIB, RLIM_INFINITY};
        empty(fill(120 * MIB, 10 * MIB));
        CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
        limit_start();
        uint64_t before = limit_purges();
        size_t count = fill(72 * MIB, 100000);
        void *other = mmap(NULL, 32 * MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(other != MAP_FAILED);
        CHECK(limit_purges() > before);
        empty(count);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_a_limit_nothing_is_purged_for_it),
        TEST(blocks_of_changing_sizes_stay_below),
        TEST(beyond_the_limit_little_stays_free),
        TEST(a_tick_goes_below_a_limit_that_is_new),
        TEST(a_child_of_fork_keeps_to_it),
        TEST(near_the_limit_on_addresses_mappings_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
