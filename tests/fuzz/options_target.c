/* The target `options`: an input is lines of text, up to the first NUL.
 *
 *     SHARDS=4                  is put into the environment, as HAKMEM_SHARDS=4
 *     OPTIONS=stats=1,shards    as HAKMEM_OPTIONS=...
 *     =retain_percent 12        hakmem_option_set("retain_percent", 12), once the environment is
 * read
 *
 * What became of it is compared with a second, plainer reading (options_expected.c). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "hakmem/hakmem.h"
#include "options_expected.h"
#include "system.h"

#include "api/environment.h"
#include "api/options.h"
#include "report/report.h"

enum { LINES_MAX = 64, COMPLAINT_BYTES_MAX = 256 };

extern char **environ;

/* Every string in memory of its exact size, so that a sanitizer sees a read behind it. */
struct lines {
    char *environment[LINES_MAX + 1];
    char *sets[LINES_MAX + 1];
};

static void add_line(char **lines, const char *prefix, const char *line, size_t length)
{
    size_t count = 0, bytes = strlen(prefix) + length + 1;

    while (lines[count])
        count++;
    if (count == LINES_MAX)
        return;
    lines[count] = malloc(bytes);
    FUZZ_CHECK(lines[count] != NULL);
    snprintf(lines[count], bytes, "%s%.*s", prefix, (int)length, line);
}

static struct lines split(const char *text)
{
    struct lines lines = {{NULL}, {NULL}};

    while (*text) {
        size_t length = strcspn(text, "\n");

        if (text[0] == '=')
            add_line(lines.sets, "", text + 1, length - 1);
        else
            add_line(lines.environment, "HAKMEM_", text, length);
        text += length + (text[length] == '\n');
    }
    return lines;
}

static void forget(struct lines *lines)
{
    for (size_t i = 0; i < LINES_MAX; i++) {
        free(lines->environment[i]);
        free(lines->sets[i]);
    }
}

static void explain(const struct lines *lines)
{
    for (size_t i = 0; fuzz_explain && lines->environment[i]; i++)
        fprintf(stderr, "environment: %s\n", lines->environment[i]);
    for (size_t i = 0; fuzz_explain && lines->sets[i]; i++)
        fprintf(stderr, "set: %s\n", lines->sets[i]);
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static void read_environment(char **environment)
{
    char **kept = environ;

    fuzz_system.captures = true;
    fuzz_system.written_length = 0;
    environ = environment;
    environment_read();
    environ = kept;
}

/* Each complaint is one line that begins as all do. */
static void check_complaints(unsigned expected)
{
    const char *line = fuzz_system.written, *end = line + fuzz_system.written_length;
    unsigned count = 0;

    FUZZ_CHECK(fuzz_system.written_length <= SYSTEM_WRITTEN_BYTES);
    for (; line < end; count++) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));

        FUZZ_CHECK(newline && newline - line < COMPLAINT_BYTES_MAX);
        FUZZ_CHECK(strncmp(line, "hakmem: option ", 15) == 0);
        line = newline + 1;
    }
    if (count != expected)
        fuzz_failed(
            "%u complaints, where %u are right:\n%.*s", count, expected,
            (int)fuzz_system.written_length, fuzz_system.written);
}

static void check_values(const struct expected *expected)
{
    for (int i = 0; i < EXPECTED_COUNT; i++) {
        long value = -1, right = expected->values[i];

        FUZZ_CHECK(hakmem_option_get(option_rows[i].name, &value) == 0);
        if (i == EXPECTED_fallback) {
            /* It takes effect only when the C library's functions have been found. */
            FUZZ_CHECK(value == 0 && options_fallback_wanted() == (right != 0));
        } else if (value != right) {
            fuzz_failed("option %s is %ld and not %ld", option_rows[i].name, value, right);
        }
    }
}

/* The path with %p replaced is what the system is asked for. */
static void check_stats_file(const char *path)
{
    static char right[3 * SYSTEM_PATH_BYTES];
    const char *found = environment_file(STATS_FILE);
    size_t length = 0;

    FUZZ_CHECK((found == NULL) == (path == NULL));
    if (!path)
        return;
    FUZZ_CHECK(strcmp(found, path) == 0);
    for (const char *c = path; *c; c++) {
        if (c[0] == '%' && c[1] == 'p' && c++)
            length += (size_t)sprintf(right + length, "%d", (int)getpid());
        else if (c[0] == '%' && c[1] == '%')
            right[length++] = *c++;
        else
            right[length++] = *c;
        if (length >= SYSTEM_PATH_BYTES / 2 - 1)
            return; /* longer than the system takes */
    }
    right[length] = '\0';
    if (strncmp(right, "/dev/", 5) == 0 || strncmp(right, "/proc/", 6) == 0)
        return; /* perhaps a descriptor, and no file */
    report_write_file(path);
    FUZZ_CHECK(strcmp(fuzz_system.created_path, right) == 0);
}

static void check_set(const char *line)
{
    size_t length = strcspn(line, " ");
    char *name = strndup(line, length);
    long value = strtol(line + length, NULL, 10), before = 0, after = 0;
    int option = option_row_find(name, length);
    const struct option_row *row = &option_rows[option < 0 ? 0 : option];
    int right = option < 0                             ? ENOENT
                : !row->settable                       ? EPERM
                : value < row->min || value > row->max ? ERANGE
                                                       : 0;

    errno = 77;
    FUZZ_CHECK(hakmem_option_get(name, &before) == (option < 0 ? ENOENT : 0));
    FUZZ_CHECK(hakmem_option_set(name, value) == right);
    FUZZ_CHECK(hakmem_option_get(name, &after) == (option < 0 ? ENOENT : 0));
    FUZZ_CHECK(after == (right == 0 ? value : before));
    FUZZ_CHECK(errno == 77);
    free(name);
}

/* What a report prints of an option, the environment takes, and it means the same. */
static void check_round_trip(void)
{
    for (unsigned i = 0; i < EXPECTED_COUNT; i++) {
        char printed[128], list[160], *environment[] = {list, NULL};
        struct text text;
        long before, after;

        if (i == EXPECTED_fallback)
            continue;
        FUZZ_CHECK(options_get(options_name(i), &before) == 0);
        text_init(&text, printed, sizeof printed);
        options_print_value(&text, i);
        snprintf(list, sizeof list, "HAKMEM_OPTIONS=%s=%s", options_name(i), text_terminate(&text));
        system_reset();
        read_environment(environment);
        check_complaints(0);
        FUZZ_CHECK(options_get(options_name(i), &after) == 0 && after == before);
    }
}

/* ---- Entry ----------------------------------------------------------------------------------- */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    system_reset();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char *text = strndup((const char *)bytes, length);
    struct lines lines = split(text);
    struct expected expected = options_expected(lines.environment);

    explain(&lines);
    read_environment(lines.environment);
    check_complaints(expected.complaints);
    check_values(&expected);
    check_stats_file(expected.stats_file);
    for (size_t i = 0; lines.sets[i]; i++)
        check_set(lines.sets[i]);
    check_round_trip();
    forget(&lines);
    free(text);
    system_reset();
    return 0;
}
