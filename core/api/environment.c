/* See environment.h. */
#include "api/environment.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/conf.h"
#include "api/options.h"
#include "base/policy.h"
#include "hardened.h"
#include "os/os.h"

extern char **environ;

enum { VARIABLE_SIZE = 64, PATH_SIZE = 4096 };

static const char prefix[] = "HAKMEM_";

/* Variables that are not options of the table. */
static const char list_name[] = "options";
static const char file_names[][13] = {"stats_file", "record_file", "crash_file", "profile_file"};

/* Copies: a program may write over its environment, for instance to set its title. */
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

/* HAKMEM_ and the name in capitals, in a buffer of VARIABLE_SIZE. */
static const char *variable_name(char *full, const char *name)
{
    struct text text;
    text_init(&text, full, VARIABLE_SIZE);
    text_string(&text, prefix);
    for (; *name; name++)
        text_char(&text, to_upper(*name));
    return text_terminate(&text);
}

/* The variable of that name; NULL if unset or empty: `NAME= command` unsets it for one command. */
static const char *variable(const char *name)
{
    char full[VARIABLE_SIZE];
    const char *value = secure_getenv(variable_name(full, name));
    return value && *value ? value : NULL;
}

/* Which of the files has the name; -1: none. */
static int find_file(const char *name, size_t length)
{
    for (int i = 0; i < FILE_COUNT; i++)
        if (same_name(name, length, file_names[i]))
            return i;
    return -1;
}

/* ---- Complaints ------------------------------------------------------------------------------ */

/* The place of a list of settings, for messages. */
static const char *place(void)
{
    return options_read_from_file() ? "this file" : "HAKMEM_OPTIONS";
}

static void complain_name(const char *name, size_t length)
{
    struct shown shown;
    options_complain(OPTION_NONE, options_shown(&shown, name, length), " does not exist");
}

static void complain_missing(int option)
{
    const char *name = options_name((unsigned)option);
    options_complain(option, name, " has no value in ", place(), ": write ", name, "=VALUE");
}

static void complain_misplaced(int file)
{
    char full[VARIABLE_SIZE];
    options_complain(
        OPTION_NONE, file_names[file], " cannot stand in ", place(), ": set ",
        variable_name(full, file_names[file]), " to the path");
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* Reads one setting of a list: if `preset`, the preset alone, else all others. */
static void read_setting(const struct conf_setting *setting, bool preset)
{
    int option = options_find(setting->name, setting->name_length);
    bool has_value = setting->value_length != 0;
    if (option >= 0 && has_value && (option == OPTION_preset) == preset)
        options_set_text(option, setting->value, setting->value_length);
    if (preset)
        return;
    int file = find_file(setting->name, setting->name_length);
    if (file >= 0)
        complain_misplaced(file);
    else if (option < 0)
        complain_name(setting->name, setting->name_length);
    else if (!has_value)
        complain_missing(option);
}

/* Callers read the preset first, wherever it is in the list. The same holds for read_conf. */
static void read_list(const char *list, bool preset)
{
    while (list && *list) {
        size_t length = strcspn(list, ","), name_length = strcspn(list, "=,");
        size_t value_start = size_min(name_length + 1, length);
        if (length)
            read_setting(
                &(struct conf_setting){list, list + value_start, name_length, length - value_start},
                preset);
        list += length + (list[length] == ',');
    }
}

static void read_conf(struct conf *conf, bool preset)
{
    struct conf_setting setting;
    while (conf_next(conf, &setting)) {
        options_read_from(conf_path, conf->line);
        read_setting(&setting, preset);
    }
    options_read_from(NULL, 0);
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
        options_complain(OPTION_NONE, file_names[file], ": the path is too long");
        return;
    }
    if (!files[file])
        files[file] = os_map(round_up(PATH_SIZE, os_page_size()), os_page_size(), NULL);
    if (files[file])
        memcpy(files[file], path, bytes);
    else
        options_complain(OPTION_NONE, file_names[file], ": there is no memory for the path");
}

/* A variable that looks like an option of ours but is none is reported, unless it is empty. */
static void check_variable(const char *variable)
{
    char name[VARIABLE_SIZE];
    size_t whole = strcspn(variable, "="), length = size_min(whole, sizeof name);
    for (size_t i = 0; i < length; i++)
        name[i] = to_lower(variable[i]);
    if (variable[whole] && variable[whole + 1] && options_find(name, length) < 0 &&
        !same_name(name, length, list_name) && find_file(name, length) < 0)
        complain_name(name, length);
}

/* True if the environment has settings for us, and can be trusted. Most programs have none. */
static bool is_set(void)
{
    for (char **entry = environ; entry && *entry; entry++)
        if (strncmp(*entry, prefix, sizeof prefix - 1) == 0)
            return !os_is_privileged();
    return false;
}

static void read_variables(void)
{
    for (int i = 0; i < OPTION_COUNT; i++)
        if (i != OPTION_preset)
            read_variable(i);
    for (int file = 0; file < FILE_COUNT; file++)
        read_file_variable(file);
    for (char **entry = environ; *entry; entry++)
        if (strncmp(*entry, prefix, sizeof prefix - 1) == 0)
            check_variable(*entry + sizeof prefix - 1);
}

/* The hardened library is always hardened. A program that asks another one for the preset must not
 * run without, unless this one serves no call, since the hardened one was loaded before it. */
static void settle_hardened(void)
{
    static const char message[] =
        "hakmem: the preset hardened is another library: load "
        "libhakmem-hardened.so.0, by `hakmem run --preset hardened` or LD_PRELOAD\n";
    if (HARDENED) {
        ATOMIC_STORE_RELAXED(&policy.hardened, 1);
    } else if (POLICY(hardened) && (!override_serves || override_serves())) {
        os_write(STDERR, message, sizeof message - 1);
        _exit(127);
    }
}

void environment_read(void)
{
    struct conf conf;
    bool set = is_set();
    const char *list = set ? variable(list_name) : NULL;
    conf_open(&conf);
    read_conf(&conf, true);
    read_list(list, true);
    if (set)
        read_variable(OPTION_preset);
    read_conf(&conf, false);
    conf_close(&conf);
    read_list(list, false);
    if (set)
        read_variables();
    settle_hardened();
}

/* ---- Queries --------------------------------------------------------------------------------- */

const char *environment_file(enum environment_file file)
{
    return files[file];
}

bool environment_wants_stats(void)
{
    return POLICY(stats) || files[STATS_FILE];
}

bool environment_wants_crash_report(void)
{
    return POLICY(crash) || files[CRASH_FILE];
}
