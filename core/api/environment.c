/* See environment.h. */
#include "api/environment.h"

#include <stdlib.h>
#include <string.h>

#include "api/options.h"
#include "base/nearest.h"
#include "base/policy.h"
#include "os/cycles.h"
#include "os/os.h"

enum { SHOWN_MAX = 64, VARIABLE_SIZE = 64, PATH_SIZE = 4096 };

static const char prefix[] = "HAKMEM_";

/* Variables that are no option of the table. */
static const char list_name[] = "options";
static const char trace_name[] = "trace"; /* with HAKMEM_DEBUG=1 */
static const char file_names[][13] = {"stats_file", "record_file", "crash_file", "profile_file"};
enum { STATS_FILE, RECORD_FILE, CRASH_FILE, PROFILE_FILE, FILE_COUNT };

/* Copies: a program may write over its environment, as those do that set their title. */
static char *files[FILE_COUNT]; /* PATH_SIZE each, NULL: not set; const after environment_read */

/* ---- Names ----------------------------------------------------------------------------------- */

static bool same_name(const char *a, size_t length, const char *b)
{
    return strlen(b) == length && memcmp(a, b, length) == 0;
}

static char to_upper(char c)
{
    return (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
}

static char to_lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* HAKMEM_ and the name in capitals. */
static void add_variable(struct text *text, const char *name)
{
    text_string(text, prefix);
    for (; *name; name++)
        text_char(text, to_upper(*name));
}

/* The variable of that name; NULL when it is not set, or empty: that is how a
 * shell takes a setting back for one command. */
static const char *variable(const char *name)
{
    char full[VARIABLE_SIZE];
    struct text text;
    text_init(&text, full, sizeof full);
    add_variable(&text, name);
    const char *value = secure_getenv(text_terminate(&text));
    return value && *value ? value : NULL;
}

/* ---- Complaints ------------------------------------------------------------------------------ */

static void start_complaint(struct text *text, char *buffer, size_t size)
{
    text_init(text, buffer, size);
    text_string(text, "hakmem: option ");
}

/* Which of the files has the name; -1: none. */
static int find_file(const char *name, size_t length)
{
    for (int i = 0; i < FILE_COUNT; i++)
        if (same_name(name, length, file_names[i]))
            return i;
    return -1;
}

/* The name that is most like this one. */
static const char *nearest_name(const char *name, size_t length)
{
    const char *nearest = file_names[0];
    unsigned best = nearest_distance(name, length, nearest);
    for (unsigned i = 1; i < FILE_COUNT + OPTION_COUNT; i++) {
        const char *other = i < FILE_COUNT ? file_names[i] : options_name(i - FILE_COUNT);
        unsigned distance = nearest_distance(name, length, other);
        if (distance < best) {
            best = distance;
            nearest = other;
        }
    }
    return nearest;
}

static void complain_name(const char *name, size_t length)
{
    char buffer[256];
    struct text text;
    start_complaint(&text, buffer, sizeof buffer);
    text_foreign(&text, name, size_min(length, SHOWN_MAX));
    text_string(&text, " does not exist; the nearest is ");
    text_string(&text, nearest_name(name, length));
    options_complain(&text);
}

static void complain_missing(int option)
{
    const char *name = options_name((unsigned)option);
    char buffer[256];
    struct text text;
    start_complaint(&text, buffer, sizeof buffer);
    text_string(&text, name);
    text_string(&text, " has no value in HAKMEM_OPTIONS: write ");
    text_string(&text, name);
    text_string(&text, "=VALUE");
    options_say_it_stays(&text, option);
    options_complain(&text);
}

static void complain_path(int file, const char *reason)
{
    char buffer[256];
    struct text text;
    start_complaint(&text, buffer, sizeof buffer);
    text_string(&text, file_names[file]);
    text_string(&text, reason);
    options_complain(&text);
}

static void complain_misplaced(int file)
{
    char buffer[256];
    struct text text;
    start_complaint(&text, buffer, sizeof buffer);
    text_string(&text, file_names[file]);
    text_string(&text, " cannot stand in HAKMEM_OPTIONS: set ");
    add_variable(&text, file_names[file]);
    text_string(&text, " to the path");
    options_complain(&text);
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* One name=value of HAKMEM_OPTIONS, which holds for the preset alone, or for all others. */
static void read_entry(const char *entry, size_t length, bool preset)
{
    size_t name_length = strcspn(entry, "=,");
    int option = options_find(entry, name_length);
    bool has_value = name_length + 1 < length;
    if (option >= 0 && has_value && (option == OPTION_preset) == preset)
        options_set_text(option, entry + name_length + 1, length - name_length - 1);
    if (preset || length == 0)
        return;
    int file = find_file(entry, name_length);
    if (file >= 0)
        complain_misplaced(file);
    else if (option < 0)
        complain_name(entry, name_length);
    else if (!has_value)
        complain_missing(option);
}

/* The preset comes before all others, wherever it stands. */
static void read_list(const char *list, bool preset)
{
    while (list && *list) {
        size_t length = strcspn(list, ",");
        read_entry(list, length, preset);
        list += length + (list[length] == ',');
    }
}

static void read_variable(int option)
{
    const char *value = variable(options_name((unsigned)option));
    if (value)
        options_set_text(option, value, strlen(value));
}

static void read_file_variable(int file)
{
    const char *path = variable(file_names[file]);
    size_t bytes = path ? strlen(path) + 1 : 0;
    if (!bytes)
        return;
    if (bytes > PATH_SIZE) {
        complain_path(file, ": the path is too long");
        return;
    }
    if (!files[file])
        files[file] = os_map(round_up(PATH_SIZE, os_page_size()), os_page_size(), NULL);
    if (files[file])
        memcpy(files[file], path, bytes);
    else
        complain_path(file, ": there is no memory for the path");
}

/* A variable that looks like an option of ours but is none is a mistake worth a line. */
static void check_variable(const char *variable)
{
    char name[NEAREST_LETTERS];
    size_t whole = strcspn(variable, "="), length = size_min(whole, sizeof name);
    for (size_t i = 0; i < length; i++)
        name[i] = to_lower(variable[i]);
    bool is_empty = variable[whole] == '\0' || variable[whole + 1] == '\0';
    if (!is_empty && options_find(name, length) < 0 && !same_name(name, length, list_name) &&
        find_file(name, length) < 0 && !(HAKMEM_DEBUG && same_name(name, length, trace_name)))
        complain_name(name, length);
}

void environment_read(void)
{
    extern char **environ;
    bool any = false;
    /* One look over the environment: most programs have nothing for us. */
    for (char **entry = environ; entry && *entry; entry++)
        any = any || strncmp(*entry, prefix, sizeof prefix - 1) == 0;
    if (!any || os_is_privileged())
        return;
    const char *list = variable(list_name);
    read_list(list, true);
    read_variable(OPTION_preset);
    read_list(list, false);
    for (int i = 0; i < OPTION_COUNT; i++)
        if (i != OPTION_preset)
            read_variable(i);
    for (int file = 0; file < FILE_COUNT; file++)
        read_file_variable(file);
    if (HAKMEM_DEBUG)
        cycles_trace = variable(trace_name) != NULL;
    for (char **entry = environ; *entry; entry++)
        if (strncmp(*entry, prefix, sizeof prefix - 1) == 0)
            check_variable(*entry + sizeof prefix - 1);
}

/* ---- Queries --------------------------------------------------------------------------------- */

const char *environment_stats_file(void)
{
    return files[STATS_FILE];
}

const char *environment_record_file(void)
{
    return files[RECORD_FILE];
}

const char *environment_profile_file(void)
{
    return files[PROFILE_FILE];
}

const char *environment_crash_file(void)
{
    return files[CRASH_FILE];
}

bool environment_wants_stats(void)
{
    return POLICY(stats) || files[STATS_FILE];
}

bool environment_wants_crash_report(void)
{
    return POLICY(crash) || files[CRASH_FILE];
}
