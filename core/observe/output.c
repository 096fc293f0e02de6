/* Where reports go: see report.h. */
#include "observe/report.h"

#include "observe/stats.h"
#include "os/os.h"

/* Enough for any report; mapped only while one is made. */
static const size_t report_capacity = 128 * KIB;

static void write_report(int fd, void (*make)(struct text *))
{
    char *buffer = os_map(report_capacity, os_page_size(), NULL);
    if (!buffer)
        return;
    struct text text;
    text_init(&text, buffer, report_capacity);
    make(&text);
    os_write(fd, buffer, text_stored(&text));
    os_unmap(buffer, report_capacity);
}

void report_warn_if_idle(void)
{
    static const char message[] =
        "hakmem: served no call: this program has a malloc of its own, or never called it\n";
    struct snapshot now;
    stats_collect(&now);
    if (now.total.malloc_calls + now.total.libc_calls == 0)
        os_write(STDERR, message, sizeof message - 1);
}

void report_print(int fd)
{
    write_report(fd, report_table);
}

/* Longer paths no system call takes. */
enum { PATH_BYTES = 4096 };

static void complain_unwritable(const char *path)
{
    static const char prefix[] = "hakmem: option stats_file: cannot write ";
    char buffer[sizeof prefix + PATH_BYTES];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    text_string(&text, prefix);
    for (; *path && text.length < sizeof buffer - 2; path++)
        text_char(&text, *path);
    text_char(&text, '\n');
    text_terminate(&text);
    os_write(STDERR, buffer, text_stored(&text));
}

void report_write_file(const char *path)
{
    char buffer[PATH_BYTES];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    for (const char *c = path; *c; c++) {
        if (c[0] == '%' && c[1] == 'p') {
            text_unsigned(&text, (uint64_t)os_process_id());
            c++;
        } else {
            text_char(&text, *c);
        }
    }
    /* A path that was cut off would be that of another file. */
    bool whole = text.length < sizeof buffer;
    int fd = whole ? os_create_file(text_terminate(&text)) : -1;
    if (fd < 0) {
        complain_unwritable(path);
        return;
    }
    write_report(fd, report_json);
    os_close(fd);
}
