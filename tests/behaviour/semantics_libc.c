/* Owns the tests of what the C library allocates itself: obstacks, lines, strings, trees, sorted
 * arrays, streams in memory. It takes the program's malloc for them, and the program frees much of
 * what it hands over (behaviours 1 and 3). Also of its own tools for the heap, which have nothing
 * to say here and must do no harm (behaviour 22).
 */
#include "semantics_support.h"

#include <locale.h>
#include <mcheck.h>
#include <obstack.h>
#include <regex.h>
#include <search.h>
#include <wchar.h>

#define obstack_chunk_alloc malloc
#define obstack_chunk_free free

/* behaviour 1 */
static void obstacks_grow_and_shrink(void **state)
{
    (void)state;
    struct obstack stack;
    obstack_init(&stack);
    void *first = obstack_alloc(&stack, 1);
    for (unsigned size = 1; size < 200000; size += size / 3 + 1) {
        unsigned char *object = obstack_alloc(&stack, size);
        assert_true(is_aligned(object, 16));
        pattern_fill(object, size, size);
        assert_true(pattern_holds(object, size, size));
    }
    for (unsigned i = 0; i < 100000; i++) {
        obstack_1grow(&stack, (char)i);
    }
    unsigned char *grown = obstack_finish(&stack);
    for (unsigned i = 0; i < 100000; i++) {
        assert_int_equal(grown[i], (unsigned char)i);
    }
    obstack_free(&stack, first);
    assert_non_null(obstack_copy(&stack, "text", 5));
    obstack_free(&stack, NULL);
}

/* behaviour 1: the block comes from the library, so hakmem knows it. */
static void check_handed_over(void *block, size_t size)
{
    assert_non_null(block);
    assert_true(hakmem_usable_size(block) >= size);
    free(block);
}

/* behaviours 1, 3 */
static void blocks_are_handed_over(void **state)
{
    (void)state;
    char *text = NULL;
    size_t length = 0;
    check_handed_over(strdup("a string"), 9);
    check_handed_over(strndup("a string", 3), 4);
    check_handed_over(wcsdup(L"wide"), 5 * sizeof(wchar_t));
    assert_int_equal(asprintf(&text, "%0500d", 1), 500);
    check_handed_over(text, 501);
    FILE *stream = open_memstream(&text, &length);
    assert_non_null(stream);
    for (unsigned i = 0; i < 100000; i++) {
        fputc('x', stream);
    }
    assert_int_equal(fclose(stream), 0);
    assert_int_equal(length, 100000);
    check_handed_over(text, 100001);
    check_handed_over(getcwd(NULL, 0), 2);
    check_handed_over(realpath("/", NULL), 2);
}

/* behaviours 1, 3: the program's own buffer is made longer. */
static void lines_are_read_into_blocks(void **state)
{
    (void)state;
    FILE *stream = tmpfile();
    assert_non_null(stream);
    for (unsigned length = 0; length < 300000; length = length * 3 + 7) {
        for (unsigned i = 0; i < length; i++) {
            fputc('a', stream);
        }
        fputc('\n', stream);
    }
    rewind(stream);
    size_t capacity = 10;
    char *line = malloc(capacity);
    ssize_t got;
    for (unsigned length = 0; (got = getline(&line, &capacity, stream)) > 0;
         length = length * 3 + 7) {
        assert_int_equal(got, length + 1);
        assert_true(hakmem_usable_size(line) >= (size_t)got + 1);
    }
    free(line);
    fclose(stream);
}

static int compare(const void *left, const void *right)
{
    return *(const int *)left < *(const int *)right ? -1 : *(const int *)left > *(const int *)right;
}

/* behaviours 1, 3: with records and buffers of the C library's own. */
static void containers_use_the_heap(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    static int numbers[COUNT];
    void *tree = NULL;
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = (i * 7919) % COUNT;
        assert_non_null(tsearch(&numbers[i], &tree, compare));
    }
    assert_true(mallinfo2().uordblks >= before + COUNT * 3 * sizeof(void *));
    while (tree) {
        assert_non_null(tdelete(*(int *const *)tree, &tree, compare));
    }
    assert_true(mallinfo2().uordblks <= before + 64 * KIB);
    qsort(numbers, COUNT, sizeof *numbers, compare);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(numbers[i], i);
    }
    assert_int_equal(hcreate(1000), 1);
    hdestroy();
    regex_t expression;
    assert_int_equal(regcomp(&expression, "^(a|b)*c{2,200}$", REG_EXTENDED), 0);
    assert_int_equal(regexec(&expression, "abbabcc", 0, NULL, 0), 0);
    regfree(&expression);
    locale_t locale = newlocale(LC_ALL_MASK, "C", NULL);
    assert_non_null(locale);
    freelocale(locale);
}

static void never(enum mcheck_status status)
{
    fail_msg("mcheck found %d", (int)status);
}

/* behaviour 22: glibc's hooks are gone, and its tools need a library of their own. */
static void tools_for_the_heap_do_no_harm(void **state)
{
    (void)state;
    setenv("MALLOC_TRACE", "/dev/null", 1);
    mtrace();
    void *block = malloc(100);
    (void)mcheck(never);
    mcheck_check_all();
    assert_int_equal(mprobe(block), MCHECK_DISABLED);
    block = realloc(block, 1000);
    assert_non_null(block);
    free(block);
    muntrace();
    unsetenv("MALLOC_TRACE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(obstacks_grow_and_shrink),      cmocka_unit_test(blocks_are_handed_over),
        cmocka_unit_test(lines_are_read_into_blocks),    cmocka_unit_test(containers_use_the_heap),
        cmocka_unit_test(tools_for_the_heap_do_no_harm),
    };
    return library_is_linked() || cmocka_run_group_tests(tests, NULL, NULL);
}
