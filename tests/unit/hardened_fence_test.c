/* map/fence: what is closed cannot be touched and has no memory, and reads as zero when it is
 * opened; by marks, by rights, and where the system refuses both. */
#include "unit.h"

#include "hardened/fence.h"
#include "os/os.h"

enum { PAGES = 16 };

static char *map_pages(void)
{
    return os_map(PAGES * os_page_size(), os_page_size(), NULL);
}

static unsigned count_mappings(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    unsigned lines = 0;
    for (int byte; (byte = fgetc(file)) != EOF;)
        lines += byte == '\n';
    fclose(file);
    return lines;
}

/* Opens and closes some pages in the middle. */
static void check_fence(enum fence fence, char *start)
{
    size_t page = os_page_size(), middle = 4 * page, length = 8 * page;
    for (int i = 0; i < 3; i++) {
        unit_expect_fault(start);
        unit_expect_fault(start + middle);
        assert_true(fence_open(fence, start + middle, length));
        assert_true(unit_all_bytes(start + middle, length, 0));
        memset(start + middle, 0x55, length);
        unit_expect_fault(start + middle - 1);
        unit_expect_fault(start + middle + length);
        assert_true(fence_close(fence, start + middle, length));
        unit_expect_fault(start + middle + length - 1);
    }
}

static void closes_and_opens(void **state)
{
    (void)state;
    char *start = map_pages();
    enum fence fence = fence_start(start, PAGES * os_page_size(), 2);
    assert_int_not_equal(fence, FENCE_NONE);
    check_fence(fence, start);
    fence_end(fence, 2);
    os_discard(start, PAGES * os_page_size());
}

static void marks_take_no_mappings(void **state)
{
    (void)state;
    enum { FENCES = 500 };
    size_t page = os_page_size();
    char *start = os_map(2 * FENCES * page, page, NULL);
    unsigned before = count_mappings();
    for (unsigned i = 0; i < FENCES; i++) {
        enum fence fence = fence_start(start + 2 * i * page, page, 2);
        if (fence != FENCE_MARKS)
            skip();
    }
    assert_true(count_mappings() <= before + 2);
    unit_expect_fault(start + 2 * (FENCES / 2) * page);
    start[(2 * (FENCES / 2) + 1) * page] = 1;
    os_discard(start, 2 * FENCES * page);
}

/* The system puts no marks into memory that is locked, and does not take it back. */
static char *map_locked(void)
{
    char *start = map_pages();
    if (!unit_lock(start, PAGES * os_page_size()))
        skip();
    return start;
}

static void locked_memory_loses_its_rights(void **state)
{
    (void)state;
    char *start = map_locked();
    enum fence fence = fence_start(start, PAGES * os_page_size(), 2);
    assert_int_equal(fence, FENCE_RIGHTS);
    check_fence(fence, start);
    fence_end(fence, 2);
    os_discard(start, PAGES * os_page_size());
}

static void is_locked_later(void **state)
{
    (void)state;
    size_t page = os_page_size();
    char *start = map_pages();
    enum fence fence = fence_start(start, PAGES * page, 2);
    if (fence != FENCE_MARKS)
        skip();
    assert_true(fence_open(fence, start, page));
    if (!unit_lock(start, page))
        skip();
    memset(start, 0x55, page);
    /* It stays open, and is zero. */
    assert_false(fence_close(fence, start, page));
    assert_true(unit_all_bytes(start, page, 0));
    assert_true(fence_open(fence, start, page));
    assert_true(unit_all_bytes(start, page, 0));
    os_discard(start, PAGES * page);
}

/* The system guards what lies before the locked page, and then refuses. */
static void is_locked_in_part(void **state)
{
    (void)state;
    size_t page = os_page_size(), length = 3 * page;
    char *start = map_pages();
    if (fence_start(start, PAGES * page, 2) != FENCE_MARKS)
        skip();
    assert_true(fence_open(FENCE_MARKS, start, length));
    memset(start, 0x55, length);
    if (!unit_lock(start + page, page))
        skip();
    assert_false(fence_close(FENCE_MARKS, start, length));
    assert_true(unit_all_bytes(start, length, 0));
    os_discard(start, PAGES * page);
}

static void rights_are_bounded(void **state)
{
    (void)state;
    size_t bytes = PAGES * os_page_size();
    unsigned most = (unsigned)(os_mapping_limit() / 4);
    char *start = map_locked();
    memset(start, 0x55, bytes);
    assert_int_equal(fence_start(start, bytes, most + 1), FENCE_NONE);
    assert_true(unit_all_bytes(start, bytes, 0x55));
    assert_int_equal(fence_start(start, bytes, most), FENCE_RIGHTS);
    char *other = map_locked();
    assert_int_equal(fence_start(other, bytes, 1), FENCE_NONE);
    fence_end(FENCE_RIGHTS, most);
    assert_int_equal(fence_start(other, bytes, 1), FENCE_RIGHTS);
    fence_end(FENCE_RIGHTS, 1);
    os_discard(start, bytes);
    os_discard(other, bytes);
}

static void without_a_fence_all_is_zero(void **state)
{
    (void)state;
    size_t bytes = PAGES * os_page_size();
    char *start = map_pages();
    memset(start, 0x55, bytes);
    assert_false(fence_close(FENCE_NONE, start, bytes));
    assert_true(unit_all_bytes(start, bytes, 0));
    assert_true(fence_open(FENCE_NONE, start, bytes));
    os_discard(start, bytes);
}

static int start(void **state)
{
    (void)state;
    fence_prepare();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First, before others have taken rights where there are no marks. */
        cmocka_unit_test(rights_are_bounded),
        cmocka_unit_test(closes_and_opens),
        cmocka_unit_test(marks_take_no_mappings),
        cmocka_unit_test(locked_memory_loses_its_rights),
        cmocka_unit_test(is_locked_later),
        cmocka_unit_test(is_locked_in_part),
        cmocka_unit_test(without_a_fence_all_is_zero),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
