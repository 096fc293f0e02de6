/* See log_path.h. */
#include "trace/log_path.h"

#include <string.h>

#include "os/os.h"

static void add_literally(struct text *text, const char *piece, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        text_char(text, piece[i]);
        if (piece[i] == '%')
            text_char(text, '%');
    }
}

/* The name that the program was called by: one file may have several. File names have at most 255
 * bytes, and other parts follow. */
static void add_program(struct text *text)
{
    enum { NAME_MAX_BYTES = 200 };
    char command[PATH_BYTES];
    size_t length = os_read_file("/proc/self/cmdline", command, sizeof command);
    size_t end = strnlen(command, length), start = end;
    while (start > 0 && command[start - 1] != '/')
        start--;
    if (start < end)
        add_literally(text, command + start, size_min(end - start, NAME_MAX_BYTES));
    else
        text_string(text, "program");
}

bool path_keep(char *pattern, const char *path)
{
    struct text text;
    char folder[PATH_BYTES];
    text_init(&text, pattern, PATH_BYTES);
    if (path[0] != '/') {
        size_t length = os_read_link("/proc/self/cwd", folder, sizeof folder);
        add_literally(&text, folder, length);
        if (length)
            text_char(&text, '/');
    }
    for (; *path; path++) {
        if (path[0] == '%' && path[1] == 'e') {
            add_program(&text);
            path++;
            continue;
        }
        text_char(&text, *path);
        if (path[0] == '%' && path[1] == '%')
            text_char(&text, *++path);
    }
    text_terminate(&text);
    return text.length < text.capacity;
}

static void add_number(struct text *text, unsigned again)
{
    text_unsigned(text, (uint64_t)os_process_id());
    if (again > 1) {
        text_char(text, '-');
        text_unsigned(text, again);
    }
}

/* The place before the last dot of the file's name, or its end. */
static const char *suffix_of(const char *pattern)
{
    const char *suffix = NULL;
    for (; *pattern; pattern++)
        if (*pattern == '/' || *pattern == '.')
            suffix = *pattern == '.' && pattern[1] != '/' ? pattern : NULL;
    return suffix ? suffix : pattern;
}

static bool has_number(const char *pattern)
{
    for (; *pattern; pattern++)
        if (*pattern == '%' && *++pattern == 'p')
            return true;
    return false;
}

bool path_resolve(const char *pattern, char *path, unsigned again)
{
    struct text text;
    const char *suffix = again > 1 && !has_number(pattern) ? suffix_of(pattern) : NULL;
    text_init(&text, path, PATH_BYTES);
    for (const char *c = pattern;; c++) {
        bool is_number = c[0] == '%' && c[1] == 'p', is_percent = c[0] == '%' && c[1] == '%';
        if (c == suffix) {
            text_char(&text, '.');
            add_number(&text, again - 1);
        }
        if (!*c)
            break;
        if (is_number)
            add_number(&text, again);
        else
            text_char(&text, *c);
        c += is_number || is_percent;
    }
    text_terminate(&text);
    return text.length < text.capacity;
}
