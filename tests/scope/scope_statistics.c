/* What the statistics of the library say of scopes. */
#include "scope_support.h"

#include <cmocka.h>
#include <malloc.h>

/* The report with that text, of which the line or object begins with `start`. */
static void check_row(char *report, const char *start, const char *row)
{
    char *found = strstr(report, start), *end = found ? found + strcspn(found, "}\n") : NULL;
    CHECK(found);
    *end = '\0';
    if (strncmp(found, row, strlen(row)) != 0)
        fprintf(stderr, "%s\n", found);
    CHECK(strncmp(found, row, strlen(row)) == 0);
}

/* As they are, with what caches have taken off. */
static void statistics_have_a_row_for_each(void **state)
{
    (void)state;
    static char report[512 * 1024];
    struct hakmem_scope *scope = make_scope("test", 0);
    CHECK(hakmem_scope_enter(scope) == 0);
    struct hakmem_scope *inner = make_scope("in\"ner", 3 * MIB);
    void *blocks[100];
    for (size_t i = 0; i < 100; i++)
        blocks[i] = malloc(1000);
    for (size_t i = 1; i < 100; i++)
        free(blocks[i]);
    CHECK(hakmem_scope_malloc(inner, MIB));
    CHECK(hakmem_stats_json(report, sizeof report) < sizeof report);
    check_row(
        report, "\"name\":\"test\"", "\"name\":\"test\",\"live_blocks\":2,\"live_bytes\":1049600,");
    check_row(
        report, "\"name\":\"test /",
        "\"name\":\"test / in\\\"ner\",\"live_blocks\":1,\"live_bytes\":1048576,");
    CHECK(hakmem_stats_json(report, sizeof report) < sizeof report);
    check_row(report, "\"limit_bytes\":3145728", "\"limit_bytes\":3145728");
    int file = memfd_create("table", 0), kept = dup(2);
    CHECK(file >= 0 && dup2(file, 2) == 2);
    malloc_stats();
    CHECK(dup2(kept, 2) == 2 && close(kept) == 0);
    ssize_t length = pread(file, report, sizeof report - 1, 0);
    CHECK(length > 0 && close(file) == 0);
    report[length] = '\0';
    check_row(report, "test  ", "test                                    2      1.0 MiB");
    check_row(report, "test / in", "test / in\"ner                           1      1.0 MiB");
    hakmem_scope_leave(scope);
    hakmem_scope_destroy(scope);
}

/* No report is cut off, however many there are. */
static void statistics_hold_a_thousand(void **state)
{
    (void)state;
    static struct hakmem_scope *scopes[1000];
    char name[48], *report = malloc(2 * MIB);
    memset(name, 0xff, 47);
    name[47] = 0;
    for (int i = 0; i < 1000; i++)
        CHECK(hakmem_scope_malloc(scopes[i] = make_scope(name, 0), 100));
    size_t length = hakmem_stats_json(report, 2 * MIB);
    CHECK(length < 2 * MIB && report[length - 2] == ']' && report[length - 1] == '}');
    free(report);
    for (int i = 0; i < 1000; i++)
        hakmem_scope_destroy(scopes[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statistics_have_a_row_for_each),
        cmocka_unit_test(statistics_hold_a_thousand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
