/* Owns the tests of the calls that ask glibc's malloc about itself: behaviours 2 and 22.
 *
 * The point is that the answers are hakmem's own: each test changes the heap by a known amount
 * and expects the figures to follow.
 */
#include "semantics_support.h"

#include "semantics_xml.h"

/* Everything that the program holds, as mallinfo2 tells it. */
static size_t bytes_in_use(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* behaviours 2, 22 */
static void mallinfo2_follows_the_heap(void **state)
{
    (void)state;
    static const size_t sizes[] = {100, 5000, 100000, 3 * MIB};
    static void *blocks[20000];
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        size_t count = 60 * MIB / sizes[s];
        count = count < COUNT_OF(blocks) ? count : COUNT_OF(blocks);
        size_t before = bytes_in_use();
        for (size_t i = 0; i < count; i++) {
            blocks[i] = malloc(sizes[s]);
            assert_non_null(blocks[i]);
        }
        size_t during = bytes_in_use();
        for (size_t i = 0; i < count; i++) {
            free(blocks[i]);
        }
        size_t after = bytes_in_use();
        assert_true(during - before >= count * sizes[s]);
        assert_true(during - before <= count * sizes[s] * 5 / 4 + MIB);
        assert_true(after < before + MIB);
    }
}

/* behaviour 22: the parts of mallinfo2 fit together as its manual says. */
static void mallinfo2_adds_up(void **state)
{
    (void)state;
    void *small = malloc(1000);
    void *big = malloc(50 * MIB);
    assert_non_null(small);
    assert_non_null(big);
    struct mallinfo2 info = mallinfo2();
    assert_true(info.uordblks >= 1000);
    assert_true(info.arena >= info.uordblks);
    assert_true(info.arena + info.hblkhd >= 50 * MIB);
    assert_int_equal(info.arena, info.uordblks + info.fordblks);
    if (info.hblkhd > 0) {
        assert_true(info.hblks > 0);
    }
    free(big);
    free(small);
}

/* behaviour 22 */
static void mallinfo2_is_right_above_four_gibibytes(void **state)
{
    (void)state;
    enum { BLOCKS = 7 };
    void *blocks[BLOCKS];
    size_t before = bytes_in_use();
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(GIB);
        assert_non_null(blocks[i]);
    }
    size_t during = bytes_in_use();
    assert_true(during - before >= BLOCKS * GIB);
    assert_true(during - before <= BLOCKS * GIB + 64 * MIB);
    for (unsigned i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
    assert_true(bytes_in_use() < before + 64 * MIB);
}

/* behaviours 2, 22: the old call tells the same as far as an int can. */
static void mallinfo_agrees_with_mallinfo2(void **state)
{
    (void)state;
    void *block = malloc(20 * MIB);
    assert_non_null(block);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    struct mallinfo narrow = mallinfo();
#pragma GCC diagnostic pop
    struct mallinfo2 wide = mallinfo2();
    assert_true(narrow.uordblks >= 0 && narrow.hblkhd >= 0);
    size_t total = (size_t)narrow.uordblks + (size_t)narrow.hblkhd;
    assert_true(total >= 20 * MIB);
    assert_int_equal(total, wide.uordblks + wide.hblkhd);
    free(block);
}

/* Makes 64 MiB of blocks resident and frees them; returns the resident bytes at the height. */
static size_t rise_and_fall(size_t size)
{
    size_t count = 64 * MIB / size;
    void **blocks = malloc(count * sizeof(void *));
    assert_non_null(blocks);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = malloc(size);
        assert_non_null(blocks[i]);
        memset(blocks[i], 1, size);
    }
    size_t height = resident_bytes();
    for (size_t i = 0; i < count; i++) {
        free(blocks[i]);
    }
    free(blocks);
    return height;
}

/* behaviour 22 */
static void malloc_trim_drops_resident_memory(void **state)
{
    (void)state;
    static const size_t sizes[] = {16, 64, 1000, 4096, 20000, 100000, MIB, 3 * MIB, 64 * MIB};
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        (void)malloc_trim(0);
        size_t before = resident_bytes();
        size_t height = rise_and_fall(sizes[s]);
        assert_true(height >= before + 60 * MIB);
        errno = ERRNO_MARK;
        int result = malloc_trim(0);
        assert_true(result == 0 || result == 1);
        assert_int_equal(errno, ERRNO_MARK);
        if (resident_bytes() >= before + 8 * MIB) {
            fail_msg("blocks of %zu: %zu KiB stay", sizes[s], (resident_bytes() - before) / KIB);
        }
    }
}

/* behaviour 22: 1 says that memory was given back; freed small blocks are never all gone yet. */
static void malloc_trim_tells_whether_it_helped(void **state)
{
    (void)state;
    (void)malloc_trim(0);
    (void)rise_and_fall(64);
    size_t before = resident_bytes();
    int result = malloc_trim(0);
    size_t after = resident_bytes();
    assert_int_equal(result, before > after + MIB ? 1 : result);
    assert_true(result == 1 || before <= after + MIB);
}

/* behaviour 22: memory that is in use is not touched by trimming. */
static void malloc_trim_keeps_what_is_in_use(void **state)
{
    (void)state;
    enum { BLOCKS = 400 };
    void *blocks[BLOCKS];
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(1 + i * i);
        assert_non_null(blocks[i]);
        pattern_fill(blocks[i], 1 + i * i, i);
    }
    for (unsigned i = 0; i < BLOCKS; i += 2) {
        free(blocks[i]);
    }
    (void)malloc_trim(0);
    (void)malloc_trim(MIB);
    for (unsigned i = 1; i < BLOCKS; i += 2) {
        assert_true(pattern_holds(blocks[i], 1 + i * i, i));
        free(blocks[i]);
    }
}

/* behaviour 22 */
static void malloc_info_refuses_options(void **state)
{
    (void)state;
    char text[64] = "";
    FILE *stream = fmemopen(text, sizeof(text), "w");
    assert_non_null(stream);
    assert_int_equal(malloc_info(1, stream), EINVAL);
    assert_int_equal(malloc_info(-1, stream), EINVAL);
    fclose(stream);
    assert_string_equal(text, "");
}

static void read_malloc_info(char *text, size_t capacity)
{
    memset(text, 0, capacity);
    FILE *stream = fmemopen(text, capacity, "w");
    assert_non_null(stream);
    assert_int_equal(malloc_info(0, stream), 0);
    assert_int_equal(ferror(stream), 0);
    fclose(stream);
}

/* behaviour 22 */
static void malloc_info_is_well_formed(void **state)
{
    (void)state;
    static char text[256 * KIB];
    void *blocks[200];
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
        blocks[i] = malloc(i * i * 60);
        assert_non_null(blocks[i]);
    }
    read_malloc_info(text, sizeof(text));
    if (!xml_is_well_formed(text, "malloc")) {
        fail_msg("not well-formed: %.2000s", text);
    }
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
        free(blocks[i]);
    }
}

/* behaviour 22: the figures in it move with the heap. */
static void malloc_info_follows_the_heap(void **state)
{
    (void)state;
    static char before[256 * KIB];
    static char during[256 * KIB];
    read_malloc_info(before, sizeof(before));
    void *block = malloc(77 * MIB);
    assert_non_null(block);
    read_malloc_info(during, sizeof(during));
    free(block);
    assert_string_not_equal(before, during);
}

/* The check itself must be able to fail. */
static void the_xml_check_sees_mistakes(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "<malloc>",
        "<malloc></heap>",
        "<malloc><heap></malloc></heap>",
        "<malloc a=1></malloc>",
        "<malloc a=\"1></malloc>",
        "<malloc a=\"1\"b=\"2\"/>",
        "<malloc/><malloc/>",
        "<malloc>&</malloc>",
        "<heap></heap>",
        "<malloc></malloc> text",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_false(xml_is_well_formed(bad[i], "malloc"));
    }
    assert_true(
        xml_is_well_formed("<malloc v=\"1\">\n<a/><b c='2' d=\"&lt;\">3</b></malloc>\n", "malloc"));
}

/* behaviours 2, 22: malloc_stats writes to standard error, and not the same for every heap. */
static size_t read_malloc_stats(char *text, size_t capacity)
{
    int ends[2];
    int saved = dup(STDERR_FILENO);
    assert_true(saved >= 0);
    assert_int_equal(pipe(ends), 0);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    malloc_stats();
    fflush(stderr);
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    close(saved);
    close(ends[1]);
    size_t length = 0;
    ssize_t got;
    while ((got = read(ends[0], text + length, capacity - 1 - length)) > 0) {
        length += (size_t)got;
    }
    close(ends[0]);
    text[length] = '\0';
    return length;
}

static void malloc_stats_follows_the_heap(void **state)
{
    (void)state;
    static char before[60 * KIB];
    static char during[60 * KIB];
    assert_true(read_malloc_stats(before, sizeof(before)) > 0);
    void *block = malloc(55 * MIB);
    assert_non_null(block);
    assert_true(read_malloc_stats(during, sizeof(during)) > 0);
    free(block);
    assert_string_not_equal(before, during);
    assert_non_null(strpbrk(during, "123456789"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mallinfo2_follows_the_heap),
        cmocka_unit_test(mallinfo2_adds_up),
        cmocka_unit_test(mallinfo2_is_right_above_four_gibibytes),
        cmocka_unit_test(mallinfo_agrees_with_mallinfo2),
        cmocka_unit_test(malloc_trim_drops_resident_memory),
        cmocka_unit_test(malloc_trim_tells_whether_it_helped),
        cmocka_unit_test(malloc_trim_keeps_what_is_in_use),
        cmocka_unit_test(malloc_info_refuses_options),
        cmocka_unit_test(malloc_info_is_well_formed),
        cmocka_unit_test(malloc_info_follows_the_heap),
        cmocka_unit_test(the_xml_check_sees_mistakes),
        cmocka_unit_test(malloc_stats_follows_the_heap),
    };
    return library_is_linked() || cmocka_run_group_tests(tests, NULL, NULL);
}
