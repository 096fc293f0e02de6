/* See environment.h. */
#include "api/environment.h"

#include <stdlib.h>
#include <string.h>

#include "api/options.h"
#include "base/nearest.h"
#include "base/policy.h"
#include "os/os.h"

enum { SHOWN_MAX = 64, VARIABLE_SIZE = 64, PATH_SIZE = 4096 };

static const char prefix[] = "HAKMEM_";

/* Variables that are no option of the table. */
static const char list_name[] = "options", file_name[] = "stats_file";

/* A copy: a program may write over its environment, as those do that set their title. */
static char stats_file[PATH_SIZE]; /* const after environment_read */

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

/* The variable HAKMEM_ and the name in capitals; NULL when it is not set, or empty: that is how a
 * shell takes a setting back for one command. */
static const char *variable(const char *name)
{
    char full[VARIABLE_SIZE];
    struct text text;
    text_init(&text, full, sizeof full);
    text_string(&text, prefix);
    for (; *name; name++)
        text_char(&text, to_upper(*name));
    const char *value = secure_getenv(text_terminate(&text));
    return value && *value ? value : NULL;
}

/* ---- Complaints ------------------------------------------------------------------------------ */

static void start_complaint(struct text *text, char *buffer, size_t size)
{
    text_init(text, buffer, size);
    text_string(text, "hakmem: option ");
}

/* The name that is most like this one. */
static const char *nearest_name(const char *name, size_t length)
{
    const char *nearest = file_name;
    unsigned best = nearest_distance(name, length, nearest);
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        unsigned distance = nearest_distance(name, length, options_name(i));
        if (distance < best) {
            best = distance;
            nearest = options_name(i);
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

static void complain_file(const char *what)
{
    char buffer[256];
    struct text text;
    start_complaint(&text, buffer, sizeof buffer);
    text_string(&text, file_name);
    text_string(&text, what);
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
    if (same_name(entry, name_length, file_name))
        complain_file(" cannot stand in HAKMEM_OPTIONS: set HAKMEM_STATS_FILE to the path");
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

static void read_stats_file(void)
{
    const char *path = variable(file_name);
    size_t bytes = path ? strlen(path) + 1 : 0;
    if (bytes <= sizeof stats_file)
        memcpy(stats_file, path ? path : "", bytes);
    else
        complain_file(": the path is too long");
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
        !same_name(name, length, file_name))
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
    read_stats_file();
    for (char **entry = environ; *entry; entry++)
        if (strncmp(*entry, prefix, sizeof prefix - 1) == 0)
            check_variable(*entry + sizeof prefix - 1);
}

/* ---- Queries --------------------------------------------------------------------------------- */

const char *environment_stats_file(void)
{
    return stats_file[0] ? stats_file : NULL;
}

bool environment_wants_stats(void)
{
    return POLICY(stats) || stats_file[0];
}
