/* os/limits: what the system's files say, in a tree of files that looks like the system's. */
#include "unit.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include "os/limits.h"
#include "os/os.h"

static char root[] = "/tmp/os_limits_XXXXXX";

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status, (void)kind, (void)place;
    return remove(path);
}

static int make_root(void **state)
{
    (void)state;
    memcpy(root + sizeof root - 7, "XXXXXX", 6);
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Writes a file below the root, and makes the folders that it lies in. */
static void put(const char *name, const char *content)
{
    char path[4096];
    snprintf(path, sizeof path, "%s%s", root, name);
    for (char *slash = strchr(path + sizeof root, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && write(file, content, strlen(content)) == (ssize_t)strlen(content));
    close(file);
}

static struct os_limits limits_below_root(void)
{
    struct os_limits limits;
    os_limits_read(root, &limits);
    return limits;
}

static void without_files_there_is_no_limit(void **state)
{
    (void)state;
    struct os_limits limits = limits_below_root();
    assert_true(limits.group_bytes == SIZE_MAX && limits.cpus == SIZE_MAX);
    assert_true(limits.address_bytes == size_min(os_address_space_limit(), os_data_limit()));
    assert_int_equal(os_footprint_read(root).resident_bytes, 0);
}

static void the_least_of_nested_groups_counts(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/outer/inner\n");
    put("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
    put("/sys/fs/cgroup/outer/inner/memory.high", "max\n");
    put("/sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
    struct os_limits limits = limits_below_root();
    assert_true(limits.group_bytes == SIZE_MAX && limits.cpus == SIZE_MAX);

    put("/sys/fs/cgroup/outer/memory.max", "1073741824\n");
    put("/sys/fs/cgroup/outer/cpu.max", "350000 100000\n");
    limits = limits_below_root();
    assert_true(limits.group_bytes == 1073741824 && limits.cpus == 4);

    put("/sys/fs/cgroup/outer/inner/memory.high", "536870912\n");
    put("/sys/fs/cgroup/outer/inner/cpu.max", "50000 100000\n");
    limits = limits_below_root();
    assert_true(limits.group_bytes == 536870912 && limits.cpus == 1);
}

/* In a container that sees the path of outside, the group itself is mounted as the root. */
static void a_group_mounted_as_the_root_is_found(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/docker/0123456789abcdef\n");
    put("/sys/fs/cgroup/memory.max", "67108864\n");
    put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    struct os_limits limits = limits_below_root();
    assert_true(limits.group_bytes == 67108864 && limits.cpus == 2);
    put("/proc/self/cgroup", "0::/\n");
    assert_true(limits_below_root().group_bytes == 67108864);
    put("/proc/self/cgroup", "0::/../elsewhere");
    assert_true(limits_below_root().group_bytes == 67108864);
}

static void version_1_has_groups_by_kind(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "5:memory:/one\n4:cpu,cpuacct:/two\n3:cpuset:/three\n0::/\n");
    put("/sys/fs/cgroup/memory/one/memory.limit_in_bytes", "268435456\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/cpu/two/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/two/cpu.cfs_period_us", "100000\n");
    struct os_limits limits = limits_below_root();
    assert_true(limits.group_bytes == 268435456 && limits.cpus == SIZE_MAX);
    put("/sys/fs/cgroup/cpu/two/cpu.cfs_quota_us", "300001\n");
    assert_true(limits_below_root().cpus == 4);
    put("/sys/fs/cgroup/memory/one/memory.limit_in_bytes", "9223372036854771712\n");
    assert_true(limits_below_root().group_bytes == SIZE_MAX);
}

/* The list is read in pieces: lines lie across their borders, and one is longer than a piece. */
static void a_long_list_is_read_to_its_end(void **state)
{
    (void)state;
    char list[8000];
    put("/sys/fs/cgroup/memory/one/memory.limit_in_bytes", "268435456\n");
    for (size_t others = 0; others < 40; others++) {
        size_t length = 0;
        for (size_t i = 0; i < others; i++)
            length += (size_t)sprintf(list + length, "%zu:name%zu:/group/%zu\n", i + 9, i, i);
        if (others % 2)
            length += (size_t)sprintf(list + length, "8:long:/%02000zu\n", others);
        sprintf(list + length, "5:memory:/one\n0::/\n");
        put("/proc/self/cgroup", list);
        CHECK(limits_below_root().group_bytes == 268435456);
    }
}

static void what_makes_no_sense_is_no_limit(void **state)
{
    (void)state;
    static const char *const numbers[] = {
        "", "\n", "0\n", "abc\n", "-5\n", "99999999999999999999999999\n", "max"};
    static const char *const lists[] = {
        "", "0", "0:", ":", "::", "0::", "\n\n\n", "0::nonsense", "x:memory", "1:memory,cpu"};
    put("/proc/self/cgroup", "0::/a\n");
    for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++) {
        put("/sys/fs/cgroup/a/memory.max", numbers[i]);
        put("/sys/fs/cgroup/a/cpu.max", numbers[i]);
        struct os_limits limits = limits_below_root();
        CHECK(limits.group_bytes == SIZE_MAX && limits.cpus == SIZE_MAX);
    }
    put("/sys/fs/cgroup/a/cpu.max", "100000 0\n");
    CHECK(limits_below_root().cpus == SIZE_MAX);
    for (size_t i = 0; i < ARRAY_LENGTH(lists); i++) {
        put("/proc/self/cgroup", lists[i]);
        CHECK(limits_below_root().group_bytes == SIZE_MAX);
    }
    char longest[6000] = "0::";
    for (size_t i = 3; i < sizeof longest - 1; i++)
        longest[i] = i % 50 ? 'd' : '/';
    put("/proc/self/cgroup", longest);
    CHECK(limits_below_root().group_bytes == SIZE_MAX);
}

static void what_the_process_takes_is_read(void **state)
{
    (void)state;
    put("/proc/self/statm", "1000 200 100 10 0 300 0\n");
    struct os_footprint footprint = os_footprint_read(root);
    assert_int_equal(footprint.address_bytes, 1000 * os_page_size());
    assert_int_equal(footprint.resident_bytes, 200 * os_page_size());
    put("/proc/self/statm", "1000");
    assert_int_equal(os_footprint_read(root).address_bytes, 0);
    footprint = os_footprint_read("");
    assert_true(footprint.resident_bytes > 0);
    assert_true(footprint.address_bytes >= footprint.resident_bytes);
}

static void limits_of_resources_are_read(void **state)
{
    (void)state;
    const struct rlimit limit = {(rlim_t)3 << 30, RLIM_INFINITY};
    pid_t child = fork();
    if (child == 0) {
        CHECK(setrlimit(RLIMIT_DATA, &limit) == 0);
        _exit(
            limits_below_root().address_bytes !=
            size_min(limit.rlim_cur, os_address_space_limit()));
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_files_there_is_no_limit),      TEST(the_least_of_nested_groups_counts),
        TEST(a_group_mounted_as_the_root_is_found), TEST(version_1_has_groups_by_kind),
        TEST(a_long_list_is_read_to_its_end),       TEST(what_makes_no_sense_is_no_limit),
        TEST(what_the_process_takes_is_read),       TEST(limits_of_resources_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
