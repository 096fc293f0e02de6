/* base/sparse: what is cleared and copied is right, and pages that hold nothing get no memory. */
#include "unit.h"

#include "base/sparse.h"
#include "os/os.h"

enum { PAGES = 64 };

static size_t page, whole;

static char *map_pages(void)
{
    char *pages = os_map(whole, page, NULL);
    assert_non_null(pages);
    assert_int_equal(madvise(pages, whole, MADV_NOHUGEPAGE), 0);
    return pages;
}

static unsigned resident_pages(const char *pages)
{
    unsigned count = 0;
    for (size_t at = 0; at < whole; at += page)
        count += unit_is_resident(pages + at);
    return count;
}

/* Each byte counts, at the ends and in between, whatever the length. */
static void zero_is_told_from_the_rest(void **state)
{
    (void)state;
    static uint64_t words[200];
    char *bytes = (char *)words;
    for (size_t size = 8; size <= sizeof words; size += 8) {
        assert_true(sparse_is_zero(words, size));
        for (size_t at = 0; at < size; at += 1 + size / 16) {
            bytes[at] = 1;
            assert_false(sparse_is_zero(words, size));
            bytes[at] = 0;
        }
        bytes[size - 1] = 1;
        assert_false(sparse_is_zero(words, size));
        assert_true(size == 8 || sparse_is_zero(words, size - 8));
        bytes[size - 1] = 0;
    }
}

static void copies_touch_what_is_written(void **state)
{
    (void)state;
    char *from = map_pages(), *to = map_pages();
    from[3] = from[10 * page] = from[whole - 1] = 7;
    sparse_copy(to, from, whole, SPARSE_TO_ZEROES);
    assert_memory_equal(to, from, whole);
    munmap(to, whole);
    to = map_pages();
    sparse_copy(to, from, whole, SPARSE_TO_ZEROES);
    assert_int_equal(resident_pages(to), 3);
    munmap(to, whole);
    munmap(from, whole);
}

/* What the target holds where the source is zero goes as well, up to the end and no further. */
static void copies_replace_what_was_there(void **state)
{
    (void)state;
    char *from = map_pages(), *to = map_pages();
    size_t part = 20 * SPARSE_STEP + 8;
    from[5 * SPARSE_STEP] = 1;
    memset(to + 7 * SPARSE_STEP, 2, whole - 7 * SPARSE_STEP);
    sparse_copy(to, from, part, SPARSE_TO_ANYTHING);
    assert_memory_equal(to, from, part);
    assert_int_equal(to[part], 2);
    munmap(to, whole);
    munmap(from, whole);
}

static long page_faults(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_minflt;
}

/* A page that was only read is the system's page of zeroes, until the first write. */
static void clearing_writes_to_what_is_written(void **state)
{
    (void)state;
    char *pages = map_pages();
    assert_true(sparse_is_zero(pages, whole));
    pages[SPARSE_STEP] = pages[2 * SPARSE_STEP - 1] = pages[9 * SPARSE_STEP + 8] = 1;
    long before = page_faults();
    sparse_clear(pages, 9 * SPARSE_STEP + 8);
    assert_int_equal(pages[9 * SPARSE_STEP + 8], 1);
    sparse_clear(pages, whole);
    assert_in_range(page_faults() - before, 0, PAGES / 4);
    assert_true(sparse_is_zero(pages, whole));
    munmap(pages, whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zero_is_told_from_the_rest),
        cmocka_unit_test(copies_touch_what_is_written),
        cmocka_unit_test(copies_replace_what_was_there),
        cmocka_unit_test(clearing_writes_to_what_is_written),
    };
    page = os_page_size();
    whole = PAGES * page;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
