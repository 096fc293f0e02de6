/* Where reports go: see report.h. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "api/environment.h"
#include "base/policy.h"
#include "os/cancel.h"
#include "os/os.h"
#include "reclaim/engine.h"
#include "report/report.h"
#include "report/stats.h"
#include "scope/scope.h"
#include "thread/fork.h"
#include "trace/trace.h"

/* ---- Standard error -------------------------------------------------------------------------- */

/* Written by the constructor, and in the child of a fork. */
static struct {
    bool started;        /* the other fields are set */
    struct os_file file; /* standard error at the start; 0: closed */
    int fd;              /* another descriptor for it; -1: none */
} kept;

/* A program may have closed the descriptor and opened another file under its number. */
static bool is_kept_file(int fd)
{
    struct os_file now = os_file_of(fd);
    return kept.file.number && now.device == kept.file.device && now.number == kept.file.number;
}

/* If a daemon left the copy open, a reader of its output would wait for the end forever: a child
 * uses its own standard error. */
static void forget_in_child(void)
{
    if (kept.fd >= 0 && is_kept_file(kept.fd))
        os_close(kept.fd);
    kept.fd = -1;
}

void report_look(void)
{
    kept.started = true;
    kept.file = os_file_of(STDERR);
    kept.fd = -1;
}

void report_start(void)
{
    report_look();
    kept.fd = kept.file.number ? os_duplicate(STDERR) : -1;
    if (kept.fd >= 0)
        pthread_atfork(NULL, NULL, forget_in_child);
}

/* -1: there is no place where a report would do no harm. */
static int standard_error(void)
{
    if (!kept.started)
        return STDERR; /* the options did not ask for statistics at the start */
    if (kept.fd >= 0 && is_kept_file(kept.fd))
        return kept.fd;
    return is_kept_file(STDERR) ? STDERR : -1;
}

void report_say(const char *line, size_t length)
{
    int fd = standard_error();
    if (fd >= 0)
        os_write_quietly(fd, line, length);
}

/* ---- Reports --------------------------------------------------------------------------------- */

/* Enough for any report; mapped only while one is made, so that it does not change the figures.
 * Little is on the stack, here and below: a signal may ask for a report on a small one. */
static size_t report_capacity(void)
{
    return 128 * KIB + (SCOPES ? scope_arenas() * KIB : 0);
}

bool report_make(
    void (*make)(struct text *, const struct process *),
    bool (*take)(void *to, const char *report, size_t length), void *to)
{
    struct text text;
    const size_t bytes = report_capacity(), capacity = bytes - sizeof(struct process);
    char *buffer = os_map(bytes, os_page_size(), NULL);
    /* Below a limit the program may have taken all addresses. */
    if (!buffer) {
        engine_give(GIVER_HEAPS, SIZE_MAX);
        buffer = os_map(bytes, os_page_size(), NULL);
    }
    if (!buffer)
        return false;
    struct process *process = (struct process *)(buffer + capacity);
    int cancel_type = cancel_put_off();
    process_look(process);
    text_init(&text, buffer, capacity);
    make(&text, process);
    bool taken = take(to, text_terminate(&text), text_stored(&text));
    os_unmap(buffer, bytes);
    cancel_restore(cancel_type);
    return taken;
}

static bool write_to(void *fd, const char *report, size_t length)
{
    return os_write_quietly(*(const int *)fd, report, length);
}

void report_print(int fd)
{
    report_make(report_table, write_to, &fd);
}

/* No system call takes longer paths. A line about one has LINE_BYTES. */
enum { PATH_BYTES = 4096, LINE_BYTES = 2 * PATH_BYTES };

static void complain_unwritable(const char *option, const char *path, const char *reason)
{
    static const char no_memory[] = "hakmem: cannot write a report: there is no memory for it\n";
    struct text text;
    size_t bytes = round_up(LINE_BYTES, os_page_size());
    char *buffer = os_map(bytes, os_page_size(), NULL);
    if (!buffer) {
        report_say(no_memory, sizeof no_memory - 1);
        return;
    }
    text_init(&text, buffer, LINE_BYTES);
    text_string(&text, "hakmem: option ");
    text_string(&text, option);
    text_string(&text, ": cannot write ");
    for (; *path && text.length < PATH_BYTES; path++)
        text_foreign(&text, path, 1);
    text_string(&text, reason);
    text_char(&text, '\n');
    text_terminate(&text);
    report_say(buffer, text_stored(&text));
    os_unmap(buffer, bytes);
}

/* Resolves the percent signs of the path. False: it is too long; cut off, it would name another
 * file. */
static bool resolve_percents(const char *path, struct text *text)
{
    for (; *path; path++) {
        if (path[0] == '%' && path[1] == 'p')
            text_unsigned(text, (uint64_t)os_process_id());
        else
            text_char(text, *path);
        path += path[0] == '%' && (path[1] == 'p' || path[1] == '%');
    }
    text_terminate(text);
    return text->length < text->capacity;
}

/* The descriptor that a path such as /dev/stdout or /dev/fd/3 names; -1: none. */
static int descriptor_of(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    int fd = -1;
    if (strcmp(path, "/dev/stdout") == 0)
        return 1;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR;
    for (size_t i = 0; i < ARRAY_LENGTH(folders); i++) {
        size_t length = strlen(folders[i]);
        if (strncmp(path, folders[i], length) != 0)
            continue;
        for (const char *c = path + length; *c >= '0' && *c <= '9' && fd < 1000000; c++) {
            fd = (fd < 0 ? 0 : fd * 10) + (*c - '0');
            if (c[1] == '\0')
                return fd;
        }
    }
    return -1;
}

/* The descriptor to write to for the one that a path names; -1: it is closed. Standard error is
 * that of the start. */
static int still_open(int fd)
{
    if (fd == STDERR)
        return standard_error();
    return os_file_of(fd).number ? fd : -1;
}

static int open_in(char *buffer, const char *option, const char *path, int mode, bool *is_standing)
{
    struct text text;
    text_init(&text, buffer, PATH_BYTES);
    if (!resolve_percents(path, &text)) {
        complain_unwritable(option, path, ": the path is too long");
        return -1;
    }
    int standing = descriptor_of(buffer);
    int fd = standing < 0 ? os_create_file(buffer, mode) : still_open(standing);
    *is_standing = standing >= 0;
    if (fd < 0)
        complain_unwritable(option, buffer, "");
    return fd;
}

int report_open(const char *option, const char *path, int mode, bool *is_standing)
{
    size_t bytes = round_up(PATH_BYTES, os_page_size());
    char *buffer = os_map(bytes, os_page_size(), NULL);
    if (!buffer) {
        complain_unwritable(option, path, ": there is no memory");
        return -1;
    }
    int fd = open_in(buffer, option, path, mode, is_standing);
    os_unmap(buffer, bytes);
    return fd;
}

void report_write_file(const char *path)
{
    static const char option[] = "stats_file";
    bool is_standing;
    int fd = report_open(option, path, 0644, &is_standing);
    if (fd < 0)
        return;
    if (!report_make(report_json, write_to, &fd))
        complain_unwritable(option, path, " to its end: is the disk full?");
    if (!is_standing)
        os_close(fd);
}

static void warn_if_idle(void)
{
    static const char message[] =
        "hakmem: served no call: this program has its own malloc, or never called it\n";
    struct snapshot now;
    stats_collect(&now);
    bool scoped = SCOPES && scope_arenas();
    if (now.total.malloc_calls + now.total.libc_calls == 0 && !scoped)
        report_say(message, sizeof message - 1);
}

/* Statistics take locks, and a signal handler may end the program while its thread holds one. */
void report_at_exit(void)
{
    static const char again[] =
        "hakmem: the program ended in the middle of a call: statistics are not written\n";
    const char *path = environment_file(STATS_FILE);
    int fd = POLICY(stats) ? standard_error() : -1;
    if (!POLICY(stats) && !path)
        return;
    if (fork_holds_lock()) {
        report_say(again, sizeof again - 1);
        return;
    }
    warn_if_idle();
    if (fd >= 0)
        report_print(fd);
    if (path)
        report_write_file(path);
}

/* ---- On a signal ----------------------------------------------------------------------------- */

/* Statistics take locks, and the thread that gets the signal may hold one. */
static void write_statistics(void)
{
    static const char again[] =
        "hakmem: dump_signal: it came in the middle of a call: statistics are not written\n";
    const char *path = environment_file(STATS_FILE);
    if (fork_holds_lock())
        report_say(again, sizeof again - 1);
    else if (path)
        report_write_file(path);
    else
        report_print(STDERR);
}

static void on_signal(int signal)
{
    int error = errno;
    const char *path = environment_file(PROFILE_FILE);
    (void)signal;
    write_statistics();
    if (path && trace_now())
        trace_now()->write_profile(path);
    errno = error;
}

void report_start_dumps(void)
{
    static const char taken[] = "hakmem: option dump_signal: that signal has a handler already, or "
                                "can have none\n";
    int number = (int)POLICY(dump_signal);
    struct sigaction before, action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    if (!number)
        return;
    bool free = sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_DFL;
    if (!free || sigaction(number, &action, NULL) != 0)
        report_say(taken, sizeof taken - 1);
}
