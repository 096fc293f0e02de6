/* os/linux: mappings with alignment, and the other calls, compared with what the C library says of
 * the same system. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>

#include "os/os.h"

#ifndef MADV_POPULATE_WRITE /* glibc 2.35 */
#define MADV_POPULATE_WRITE 23
#endif

/* Bytes of address space of the process. */
static size_t address_space(void)
{
    size_t kib = 0;
    char line[256];
    FILE *file = fopen("/proc/self/status", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) && sscanf(line, "VmSize: %zu kB", &kib) != 1)
        continue;
    fclose(file);
    return kib * KIB;
}

static bool is_mapped(const void *address)
{
    unsigned char resident;
    return mincore((void *)address, 1, &resident) == 0;
}

static void mappings_are_aligned_zero_and_exact(void **state)
{
    (void)state;
    static const size_t pages[] = {1, 3, 16, 511, 512, 513, 2000};
    size_t page = os_page_size();
    address_space();
    for (size_t alignment = 1; alignment <= 256 * MIB; alignment *= 2) {
        for (size_t i = 0; i < ARRAY_LENGTH(pages); i++) {
            size_t size = pages[i] * page, before = address_space();
            char *map = os_map(size, alignment, NULL);
            assert_non_null(map);
            assert_int_equal((uintptr_t)map % alignment, 0);
            assert_int_equal(address_space() - before, size);
            assert_int_equal(map[0] | map[size / 2] | map[size - 1], 0);
            map[0] = map[size - 1] = 1;
            assert_true(os_unmap(map, size));
            assert_int_equal(address_space(), before);
        }
    }
}

/* What the program gives to a part of a range makes the system see several mappings there. */
static void advice_is_seen(void **state)
{
    (void)state;
    enum { PAGES = 16, WIPE = 18, KEEP = 19 };
    size_t page = os_page_size(), size = PAGES * page;
    char *map = os_map(size, page, NULL);
    assert_true(os_is_one_mapping(map, size));
    memset(map, 'x', size);
    assert_true(os_is_one_mapping(map, size));
    for (unsigned at = 0; at < PAGES; at++) {
        assert_int_equal(madvise(map + at * page, page, WIPE), 0);
        assert_false(os_is_one_mapping(map, size));
        assert_int_equal(madvise(map + at * page, page, KEEP), 0);
        assert_int_equal(mprotect(map + at * page, page, PROT_READ), 0);
        assert_false(os_is_one_mapping(map, size));
        assert_int_equal(mprotect(map + at * page, page, PROT_READ | PROT_WRITE), 0);
        assert_true(os_is_one_mapping(map, size));
    }
    assert_true(unit_all_bytes(map, size, 'x'));
    assert_true(os_unmap(map, size));
}

static void a_free_hint_is_taken_and_a_used_one_is_not(void **state)
{
    (void)state;
    size_t size = 4 * MIB;
    char *first = os_map(size, 2 * MIB, NULL);
    assert_non_null(first);
    char *second = os_map(size, 2 * MIB, first);
    assert_non_null(second);
    assert_true(second + size <= first || first + size <= second);
    assert_true(os_unmap(first, size));
    assert_ptr_equal(os_map(size, 2 * MIB, first), first);
    assert_true(os_unmap(first, size));
    assert_true(os_unmap(second, size));
}

static void impossible_sizes_fail_and_keep_errno(void **state)
{
    (void)state;
    size_t before = address_space();
    errno = 77;
    assert_null(os_map((size_t)1 << 62, 4096, NULL));
    assert_null(os_map(4096, (size_t)1 << 62, NULL));
    assert_null(os_map(SIZE_MAX - 4095, 2 * MIB, NULL));
    assert_null(os_reserve((size_t)1 << 62));
    assert_false(os_unmap((void *)1, 4096));
    assert_false(os_purge((void *)1, 4096));
    assert_false(os_make_writable((void *)1, 4096));
    assert_int_equal(errno, 77);
    assert_int_equal(address_space(), before);
}

static void reserved_memory_becomes_writable_by_parts(void **state)
{
    (void)state;
    size_t size = 64 * MIB;
    char *map = os_reserve(size);
    assert_non_null(map);
    assert_int_equal(map[0] | map[size / 2] | map[size - 1], 0);
    assert_true(os_make_writable(map + size / 2, 64 * KIB));
    map[size / 2] = 1;
    map[size / 2 + 64 * KIB - 1] = 1;
    assert_int_equal(map[size / 2 - 1], 0);
    assert_true(os_unmap(map, size));
}

/* Of many addresses each bit above those of a page is 0 and is 1, up to those that must be as they
 * are for the address to be near. */
static void scattered_memory_lies_anywhere(void **state)
{
    (void)state;
    size_t size = MIB;
    uintptr_t ones = 0, zeros = 0, near = (uintptr_t)os_map(size, os_page_size(), NULL);
    size_t before = address_space(), both = os_page_size();
    while (both < near / 128)
        both *= 2;
    both -= os_page_size();
    for (int i = 0; i < 200; i++) {
        char *map = os_reserve_scattered(size, (void *)near);
        assert_non_null(map);
        assert_true((uintptr_t)map <= near && (uintptr_t)map > near / 8 * 7);
        assert_int_equal(map[0] | map[size - 1], 0);
        ones |= (uintptr_t)map;
        zeros |= ~(uintptr_t)map;
        assert_true(os_make_writable(map, size));
        assert_true(os_unmap(map, size));
    }
    assert_true((ones & zeros & both) == both);
    assert_true(address_space() <= before);
}

/* Where something is mapped, or nothing can be, it lies elsewhere. */
static void memory_that_cannot_be_scattered_lies_elsewhere(void **state)
{
    (void)state;
    assert_non_null(os_reserve_scattered(MIB, NULL));
    assert_non_null(os_reserve_scattered(MIB, (void *)os_page_size()));
    assert_null(os_reserve_scattered((size_t)1 << 62, (void *)state));
}

static void purged_pages_read_as_zero(void **state)
{
    (void)state;
    size_t page = os_page_size();
    char *map = os_map(4 * page, page, NULL);
    memset(map, 'x', 4 * page);
    assert_true(os_purge(map + page, 2 * page));
    assert_true(unit_all_bytes(map, page, 'x'));
    assert_true(unit_all_bytes(map + page, 2 * page, 0));
    assert_true(unit_all_bytes(map + 3 * page, page, 'x'));
    assert_true(os_unmap(map, 4 * page));
}

static void mappings_grow_in_place_or_move(void **state)
{
    (void)state;
    size_t page = os_page_size(), size = 4 * page;
    char *area = os_map(4 * size, page, NULL);
    char *map = area;
    memset(map, 'x', size);
    /* The rest of the area is in the way until it is unmapped. */
    assert_true(os_unmap(area + size, 3 * size));
    char *obstacle = os_map(size, page, area + size);
    if (obstacle == area + size) {
        assert_int_equal(os_resize(map, size, 2 * size), OS_MOVE_REFUSED);
        assert_true(unit_all_bytes(map, size, 'x'));
    }
    assert_true(os_unmap(obstacle, size));
    assert_int_equal(os_resize(map, size, 2 * size), OS_MOVED);
    /* Protection makes two mappings of one. */
    assert_true(os_make_untouchable(map + size, size));
    assert_int_equal(os_resize(map, 2 * size, 3 * size), OS_MOVE_FAILED);
    assert_true(os_map_anew(map + size, size));
    assert_true(unit_all_bytes(map, size, 'x'));
    assert_true(unit_all_bytes(map + size, size, 0));

    char *target = os_map(3 * size, 2 * MIB, NULL);
    assert_int_equal(os_move(map, 2 * size, target, 3 * size), OS_MOVED);
    assert_false(is_mapped(map));
    assert_true(unit_all_bytes(target, size, 'x'));
    assert_true(unit_all_bytes(target + size, 2 * size, 0));

    char *elsewhere = os_relocate(target, 3 * size, 64 * MIB);
    assert_non_null(elsewhere);
    assert_true(unit_all_bytes(elsewhere, size, 'x'));
    assert_true(unit_all_bytes(elsewhere + size, 64 * MIB - size, 0));
    assert_null(os_relocate(elsewhere, 64 * MIB, (size_t)1 << 62));
    assert_true(unit_all_bytes(elsewhere, size, 'x'));
    assert_true(os_unmap(elsewhere, 64 * MIB));
}

static void populated_pages_have_memory(void **state)
{
    (void)state;
    size_t page = os_page_size();
    char *map = os_map(4 * page, page, NULL);
    assert_false(unit_is_resident(map));
    /* Linux before 5.14 refuses it, an emulator may do nothing. */
    if (madvise(map, page, MADV_POPULATE_WRITE) != 0 || !unit_is_resident(map))
        skip();
    os_populate(map + page, 2 * page);
    assert_true(unit_is_resident(map + page) && unit_is_resident(map + 2 * page));
    assert_false(unit_is_resident(map + 3 * page));
    assert_true(unit_all_bytes(map, 4 * page, 0));
    assert_true(os_unmap(map, 4 * page));
}

static void calls_are_counted_by_kind(void **state)
{
    (void)state;
    uint64_t before[OS_CALL_COUNT];
    uint32_t word = 0;
    size_t page = os_page_size();
    memcpy(before, os_counts, sizeof before);
    char *map = os_map(2 * page, page, NULL);
    os_make_writable(map, page);
    os_purge(map, page);
    os_populate(map, page);
    char setting[64] = "";
    os_read_file("/sys/kernel/mm/transparent_hugepage/enabled", setting, sizeof setting - 1);
    assert_int_equal(os_gives_huge_pages(), strncmp(setting, "[always]", 8) == 0);
    os_advise_huge_pages(map, page, true);
    os_advise_huge_pages(map, page, false);
    os_resize(map, 2 * page, 2 * page);
    os_unmap(map, 2 * page);
    os_futex_wake(&word);
    os_futex_wait(&word, 1);
    assert_int_equal(os_counts[OS_MMAP] - before[OS_MMAP], 1);
    assert_int_equal(os_counts[OS_MPROTECT] - before[OS_MPROTECT], 1);
    assert_int_equal(os_counts[OS_MADVISE] - before[OS_MADVISE], 4);
    assert_int_equal(os_counts[OS_MREMAP] - before[OS_MREMAP], 1);
    assert_int_equal(os_counts[OS_MUNMAP] - before[OS_MUNMAP], 1);
    assert_int_equal(os_counts[OS_FUTEX] - before[OS_FUTEX], 2);
}

static int64_t exact_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void facts_agree_with_the_c_library(void **state)
{
    (void)state;
    cpu_set_t set;
    assert_int_equal(os_page_size(), sysconf(_SC_PAGESIZE));
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    assert_int_equal(os_cpu_count(), CPU_COUNT(&set));
    assert_int_equal(os_process_id(), getpid());
    assert_false(os_is_privileged());
    assert_true(os_resident_peak() >= MIB / 2 && os_resident_peak() < TIB);
    int64_t before = exact_ms(), between = (int64_t)os_clock_ms(), after = exact_ms();
    assert_true(between >= before - 1000 && between <= after + 1000);
}

static void set_limit(void *argument)
{
    struct rlimit limit = {*(rlim_t *)argument, RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    CHECK(
        os_address_space_limit() == (limit.rlim_cur == RLIM_INFINITY ? SIZE_MAX : limit.rlim_cur));
}

static void the_limit_on_address_space_is_known(void **state)
{
    (void)state;
    rlim_t limits[] = {GIB, 64 * GIB, RLIM_INFINITY};
    for (size_t i = 0; i < ARRAY_LENGTH(limits); i++)
        unit_in_child(set_limit, &limits[i]);
}

static void files_are_created_and_written_whole(void **state)
{
    (void)state;
    char path[] = "/tmp/hakmem-unit-XXXXXX", read_back[100];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "longer text that was there", 26), 26);
    close(fd);
    fd = os_create_file(path, 0600);
    assert_true(fd >= 0);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    os_write(fd, "short", 5);
    os_write(fd, " text", 5);
    os_close(fd);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    fd = open(path, O_RDONLY);
    assert_int_equal(read(fd, read_back, sizeof read_back), 10);
    assert_memory_equal(read_back, "short text", 10);
    close(fd);
    unlink(path);
    assert_int_equal(os_create_file("/nonexistent/file", 0600), -1);
}

static void open_files_are_told_apart(void **state)
{
    (void)state;
    int ends[2], others[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pipe(others), 0);
    struct os_file file = os_file_of(ends[0]), same, other = os_file_of(others[0]);
    int duplicate = os_duplicate(ends[0]);
    assert_true(duplicate >= 10);
    assert_true(fcntl(duplicate, F_GETFD) & FD_CLOEXEC);
    same = os_file_of(duplicate);
    assert_true(file.number && file.number == same.number && file.device == same.device);
    assert_false(file.number == other.number && file.device == other.device);
    os_close(duplicate);
    assert_int_equal(os_file_of(duplicate).number, 0);
    assert_int_equal(os_duplicate(duplicate), -1);
    for (int i = 0; i < 2; i++) {
        close(ends[i]);
        close(others[i]);
    }
}

static void a_pipe_without_a_reader_is_no_signal(void **state)
{
    (void)state;
    int ends[2];
    sigset_t before, after;
    assert_int_equal(pipe(ends), 0);
    assert_true(os_write_quietly(ends[1], "text", 4));
    close(ends[0]);
    errno = 77;
    assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &before), 0);
    assert_false(os_write_quietly(ends[1], "text", 4));
    assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &after), 0);
    assert_memory_equal(&before, &after, sizeof(uint64_t));
    assert_int_equal(errno, 77);
    close(ends[1]);
    assert_false(os_write_quietly(ends[1], "text", 4));
}

static void files_and_links_are_read(void **state)
{
    (void)state;
    char buffer[64];
    assert_int_equal(os_read_file("/proc/self/comm", buffer, sizeof buffer), 14);
    assert_memory_equal(buffer, "unit_os_linux\n", 14);
    assert_int_equal(os_read_file("/proc/self/comm", buffer, 4), 4);
    assert_int_equal(os_read_file("/nonexistent", buffer, sizeof buffer), 0);
    assert_int_equal(os_read_file("/", buffer, sizeof buffer), 0);
    assert_int_equal(os_read_link("/proc/self/cwd", buffer, 1), 1);
    assert_int_equal(buffer[0], '/');
    assert_int_equal(os_read_link("/nonexistent", buffer, sizeof buffer), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mappings_are_aligned_zero_and_exact),
        cmocka_unit_test(advice_is_seen),
        cmocka_unit_test(a_free_hint_is_taken_and_a_used_one_is_not),
        cmocka_unit_test(impossible_sizes_fail_and_keep_errno),
        cmocka_unit_test(reserved_memory_becomes_writable_by_parts),
        cmocka_unit_test(scattered_memory_lies_anywhere),
        cmocka_unit_test(memory_that_cannot_be_scattered_lies_elsewhere),
        cmocka_unit_test(purged_pages_read_as_zero),
        cmocka_unit_test(mappings_grow_in_place_or_move),
        cmocka_unit_test(populated_pages_have_memory),
        cmocka_unit_test(calls_are_counted_by_kind),
        cmocka_unit_test(facts_agree_with_the_c_library),
        cmocka_unit_test(the_limit_on_address_space_is_known),
        cmocka_unit_test(files_are_created_and_written_whole),
        cmocka_unit_test(open_files_are_told_apart),
        cmocka_unit_test(a_pipe_without_a_reader_is_no_signal),
        cmocka_unit_test(files_and_links_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
