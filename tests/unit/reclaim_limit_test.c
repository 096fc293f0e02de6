/* reclaim/limit: near a limit, what is free goes back before more becomes resident. */
#include "unit.h"

#include <sys/stat.h>

#include "api/alloc.h"
#include "api/options.h"
#include "checks/walk.h"
#include "os/limits.h"
#include "reclaim/engine.h"
#include "reclaim/limit.h"
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

/* A large block of which little is ever touched does not bring the limit near, until it is. */
static void what_was_never_touched_does_not_count(void **state)
{
    (void)state;
    skip_sanitized();
    pid_t child = fork();
    if (child == 0) {
        enum { ROOM_MIB = 100 };
        CHECK(options_set("limit_mib", (long)resident_mib() + ROOM_MIB) == 0);
        char *sparse = alloc(GIB);
        empty(fill(20 * MIB, 100000));
        limit_tick(30000000);
        CHECK(!pressure_is_near());
        memset(sparse, 1, ROOM_MIB * MIB);
        limit_tick(40000000);
        CHECK(pressure_is_near() && free_bytes() < 2 * MIB);
        release(sparse);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
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

static char root[] = "/tmp/reclaim_limit_XXXXXX";

static const char *const put_paths[] = {
    "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup", "/sys/fs", "/sys",
    "/proc/self/cgroup",         "/proc/self",     "/proc",   ""};

static const char *below_root(const char *path)
{
    static char full[sizeof root + 64];
    snprintf(full, sizeof full, "%s%s", root, path);
    return full;
}

static void put(const char *path, const char *content)
{
    FILE *file = fopen(below_root(path), "w");
    CHECK(file && fputs(content, file) >= 0 && fclose(file) == 0);
}

static int make_root(void **state)
{
    memcpy(root + sizeof root - 7, "XXXXXX", 6);
    CHECK(mkdtemp(root));
    for (size_t i = ARRAY_LENGTH(put_paths) - 1; i-- > 0;)
        if (i != 0 && i != 4)
            CHECK(mkdir(below_root(put_paths[i]), 0700) == 0);
    put("/proc/self/cgroup", "0::/\n");
    limit_root = root;
    return set_up(state);
}

static int remove_root(void **state)
{
    int result = tear_down(state);
    for (size_t i = 0; i < ARRAY_LENGTH(put_paths); i++)
        remove(below_root(put_paths[i]));
    limit_root = "";
    reclaim_read_limits();
    return result;
}

/* With the option the program has said that files may be opened while it runs. */
static void a_limit_that_changes_is_seen_by_ticks(void **state)
{
    (void)state;
    skip_sanitized();
    assert_int_equal(options_set("limit_mib", 100000), 0);
    put("/sys/fs/cgroup/memory.max", "1073741824\n");
    limit_tick(10000000);
    assert_int_equal(limit_bytes(), 1 * GIB);
    put("/sys/fs/cgroup/memory.max", "max\n");
    limit_tick(10000999); /* not so soon */
    assert_int_equal(limit_bytes(), 1 * GIB);
    limit_tick(10001000);
    assert_int_equal(limit_bytes(), 100000 * MIB);

    size_t limit = (resident_mib() + 8) * MIB;
    char text[32];
    snprintf(text, sizeof text, "%zu\n", limit);
    empty(fill(30 * MIB, 3 * MIB));
    assert_true(resident_mib() * MIB > limit);
    put("/sys/fs/cgroup/memory.max", text);
    limit_tick(10002000);
    assert_true(resident_mib() * MIB < limit);
    walk_all();
}

/* A filter of system calls may kill who opens a file. */
static void without_the_option_no_file_is_read_again(void **state)
{
    (void)state;
    put("/sys/fs/cgroup/memory.max", "1073741824\n");
    reclaim_read_limits();
    assert_int_equal(limit_bytes(), 1 * GIB);
    put("/sys/fs/cgroup/memory.max", "max\n");
    limit_tick(20000000);
    assert_int_equal(limit_bytes(), 1 * GIB);
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
        reclaim_read_limits();
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
#define TEST_WITH_ROOT(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_a_limit_nothing_is_purged_for_it),
        TEST(blocks_of_changing_sizes_stay_below),
        TEST(beyond_the_limit_little_stays_free),
        TEST(a_tick_goes_below_a_limit_that_is_new),
        TEST(what_was_never_touched_does_not_count),
        TEST(a_child_of_fork_keeps_to_it),
        TEST(near_the_limit_on_addresses_mappings_go),
        TEST_WITH_ROOT(a_limit_that_changes_is_seen_by_ticks),
        TEST_WITH_ROOT(without_the_option_no_file_is_read_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
