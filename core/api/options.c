/* See options.h. */
#include "api/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/policy.h"
#include "os/os.h"

enum { PRESETS = 3, NAME_SIZE = 16, NAME_MAX_LENGTH = 32 };

struct option {
    char name[NAME_SIZE];
    const char *words;
    bool settable;
    long min, max;
    long preset[PRESETS];
};

#define OPTION(name, ...) _Static_assert(sizeof #name <= NAME_SIZE, "the table has room");
#include "base/options.def"
#undef OPTION

static const struct option table[OPTION_COUNT] = {
#define OPTION(name, unit, words, settable, min, max, speed, balanced, lean, help)                 \
    {#name, words, settable, min, max, {speed, balanced, lean}},
#include "base/options.def"
#undef OPTION
};

_Static_assert(sizeof policy == OPTION_COUNT * sizeof(long), "a field an option, in their order");

static long *field(unsigned option)
{
    return (long *)&policy + option;
}

/* A copy: a program may write over its environment, as those do that set their title. */
static char stats_file[4096];

static bool fallback_wanted; /* const after options_read */

/* ---- Words and names ------------------------------------------------------------------------- */

static bool same_name(const char *a, size_t length, const char *b)
{
    return strlen(b) == length && memcmp(a, b, length) == 0;
}

/* Number of single-letter edits between two names, at most NAME_MAX_LENGTH long each. */
static unsigned edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    unsigned row[NAME_MAX_LENGTH + 1];
    for (unsigned j = 0; j <= b_length; j++)
        row[j] = j;
    for (unsigned i = 1; i <= a_length; i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (unsigned j = 1; j <= b_length; j++) {
            unsigned replace = diagonal + (a[i - 1] != b[j - 1]);
            unsigned edit = 1 + (row[j] < row[j - 1] ? row[j] : row[j - 1]);
            diagonal = row[j];
            row[j] = replace < edit ? replace : edit;
        }
    }
    return row[b_length];
}

/* The word of a list separated by blanks that starts at `*list`, which moves on to the next; NULL
 * at the end. */
static const char *next_word(const char **list, size_t *length)
{
    const char *word = *list;
    *length = strcspn(word, " ");
    *list = word + *length + (word[*length] == ' ');
    return *length ? word : NULL;
}

static const char *nth_word(const char *words, long n, size_t *length)
{
    const char *word;
    while ((word = next_word(&words, length)) != NULL && n-- > 0)
        continue;
    return word;
}

static int find_option(const char *name, size_t length)
{
    for (int i = 0; i < OPTION_COUNT; i++)
        if (same_name(name, length, table[i].name))
            return i;
    return -1;
}

/* ---- Complaints ------------------------------------------------------------------------------ */

static char to_upper(char c)
{
    return (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
}

static char to_lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static void text_piece(struct text *text, const char *piece, size_t length)
{
    for (size_t i = 0; i < length; i++)
        text_char(text, piece[i]);
}

static void complain(struct text *text)
{
    text_char(text, '\n');
    text_terminate(text);
    os_write(STDERR, text->buffer, text_stored(text));
}

static void complain_name(const char *name, size_t length)
{
    char buffer[256];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    const char *nearest = "stats_file";
    size_t known = size_min(length, NAME_MAX_LENGTH);
    unsigned best = edit_distance(name, known, nearest, strlen(nearest));
    for (int i = 0; i < OPTION_COUNT; i++) {
        unsigned distance = edit_distance(name, known, table[i].name, strlen(table[i].name));
        if (distance < best) {
            best = distance;
            nearest = table[i].name;
        }
    }
    text_string(&text, "hakmem: option ");
    text_piece(&text, name, size_min(length, 64));
    text_string(&text, " does not exist; the nearest is ");
    text_string(&text, nearest);
    complain(&text);
}

static void complain_value(int option, const char *value, size_t length, const char *nearest)
{
    char buffer[256];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    text_string(&text, "hakmem: option ");
    text_string(&text, table[option].name);
    text_string(&text, " cannot be ");
    text_piece(&text, value, size_min(length, 64));
    text_string(&text, "; the nearest that it can be is ");
    text_string(&text, nearest);
    text_string(&text, "; it stays ");
    options_print_value(&text, (unsigned)option);
    complain(&text);
}

/* ---- Values ---------------------------------------------------------------------------------- */

static bool parse_word(int option, const char *value, size_t length, long *parsed)
{
    const char *words = table[option].words, *word, *nearest = "";
    size_t word_length, nearest_length = 0;
    unsigned best = 2 * NAME_MAX_LENGTH;
    for (long i = 0; (word = next_word(&words, &word_length)) != NULL; i++) {
        if (word_length == length && memcmp(word, value, length) == 0) {
            *parsed = i;
            return true;
        }
        unsigned distance =
            edit_distance(value, size_min(length, NAME_MAX_LENGTH), word, word_length);
        if (distance < best) {
            best = distance;
            nearest = word;
            nearest_length = word_length;
        }
    }
    char copy[NAME_MAX_LENGTH + 1] = {0};
    memcpy(copy, nearest, size_min(nearest_length, NAME_MAX_LENGTH));
    complain_value(option, value, length, copy);
    return false;
}

static bool parse_number(int option, const char *value, size_t length, long *parsed)
{
    bool negative = length > 0 && value[0] == '-', number = length > negative;
    long result = 0;
    for (size_t i = negative; i < length; i++) {
        number = number && value[i] >= '0' && value[i] <= '9';
        if (number && result <= table[option].max)
            result = result * 10 + (value[i] - '0');
    }
    result = negative ? -result : result;
    if (number && result >= table[option].min && result <= table[option].max) {
        *parsed = result;
        return true;
    }
    long nearest = *field(option);
    if (number)
        nearest = result < table[option].min ? table[option].min : table[option].max;
    char digits[32];
    struct text text;
    text_init(&text, digits, sizeof digits);
    text_signed(&text, nearest);
    complain_value(option, value, length, text_terminate(&text));
    return false;
}

static void apply_preset(long preset)
{
    for (int i = 0; i < OPTION_COUNT; i++)
        if (i != OPTION_fallback && i != OPTION_stats)
            ATOMIC_STORE_RELAXED(field(i), table[i].preset[preset]);
}

static void set_from_text(int option, const char *value, size_t length)
{
    long parsed = 0;
    bool good = *table[option].words ? parse_word(option, value, length, &parsed)
                                     : parse_number(option, value, length, &parsed);
    if (good && option == OPTION_preset)
        apply_preset(parsed);
    else if (good && option == OPTION_fallback)
        fallback_wanted = parsed;
    else if (good)
        ATOMIC_STORE_RELAXED(field(option), parsed);
}

/* ---- The environment ------------------------------------------------------------------------- */

/* Calls `set` for each name=value of HAKMEM_OPTIONS whose option is (or is not) the preset: that
 * one comes first, wherever it stands. */
static void read_list(const char *list, bool preset)
{
    while (*list) {
        size_t length = strcspn(list, ","), name_length = strcspn(list, "=,");
        int option = find_option(list, name_length);
        bool is_file = same_name(list, name_length, "stats_file");
        if (option >= 0 && name_length < length && (option == OPTION_preset) == preset)
            set_from_text(option, list + name_length + 1, length - name_length - 1);
        else if (option >= 0 && name_length == length && !preset)
            complain_value(option, "nothing", 7, "name=value");
        else if (is_file && !preset)
            complain_value(OPTION_stats, "a file here", 11, "HAKMEM_STATS_FILE=path");
        else if (option < 0 && length && !preset)
            complain_name(list, name_length);
        list += length + (list[length] == ',');
    }
}

/* The name of the variable that sets the option: HAKMEM_ and the name in capitals. */
static void variable_name(int option, char name[NAME_MAX_LENGTH + 8])
{
    struct text text;
    text_init(&text, name, NAME_MAX_LENGTH + 8);
    text_string(&text, "HAKMEM_");
    for (const char *c = table[option].name; *c; c++)
        text_char(&text, to_upper(*c));
    text_terminate(&text);
}

/* A variable that looks like an option of ours but is none is a mistake worth a line. */
static void check_variable(const char *variable)
{
    char name[NAME_MAX_LENGTH + 1] = {0};
    size_t length = strcspn(variable, "=");
    for (size_t i = 0; i < length && i < NAME_MAX_LENGTH; i++)
        name[i] = to_lower(variable[i]);
    length = size_min(length, NAME_MAX_LENGTH);
    if (find_option(name, length) < 0 && !same_name(name, length, "options") &&
        !same_name(name, length, "stats_file"))
        complain_name(name, length);
}

static void read_variable(int option)
{
    char name[NAME_MAX_LENGTH + 8];
    variable_name(option, name);
    const char *value = secure_getenv(name);
    if (value)
        set_from_text(option, value, strlen(value));
}

static void read_stats_file(void)
{
    static const char too_long[] = "hakmem: option stats_file: the path is too long\n";
    const char *path = secure_getenv("HAKMEM_STATS_FILE");
    if (!path)
        return;
    size_t bytes = strlen(path) + 1;
    if (bytes <= sizeof stats_file)
        memcpy(stats_file, path, bytes);
    else
        os_write(STDERR, too_long, sizeof too_long - 1);
}

void options_read(void)
{
    extern char **environ;
    bool any = false;
    /* One look over the environment: most programs have nothing for us. */
    for (char **entry = environ; entry && *entry; entry++)
        any = any || strncmp(*entry, "HAKMEM_", 7) == 0;
    if (!any || os_is_privileged())
        return;
    const char *list = secure_getenv("HAKMEM_OPTIONS");
    if (list)
        read_list(list, true);
    read_variable(OPTION_preset);
    if (list)
        read_list(list, false);
    for (int i = 0; i < OPTION_COUNT; i++)
        if (i != OPTION_preset)
            read_variable(i);
    read_stats_file();
    for (char **entry = environ; *entry; entry++)
        if (strncmp(*entry, "HAKMEM_", 7) == 0)
            check_variable(*entry + 7);
}

/* ---- Queries --------------------------------------------------------------------------------- */

bool options_fallback_wanted(void)
{
    return fallback_wanted;
}

const char *options_stats_file(void)
{
    return stats_file[0] ? stats_file : NULL;
}

const char *options_name(unsigned option)
{
    return table[option].name;
}

bool options_takes_word(unsigned option)
{
    return table[option].words[0] != '\0';
}

void options_print_value(struct text *text, unsigned option)
{
    long value = ATOMIC_LOAD_RELAXED(field(option));
    size_t length;
    if (options_takes_word(option)) {
        const char *word = nth_word(table[option].words, value, &length);
        text_piece(text, word, length);
    } else {
        text_signed(text, value);
    }
}

int options_get(const char *name, long *value)
{
    int option = find_option(name, strlen(name));
    if (option < 0)
        return ENOENT;
    *value = ATOMIC_LOAD_RELAXED(field(option));
    return 0;
}

int options_set(const char *name, long value)
{
    int option = find_option(name, strlen(name));
    if (option < 0)
        return ENOENT;
    if (!table[option].settable)
        return EPERM;
    if (value < table[option].min || value > table[option].max)
        return ERANGE;
    ATOMIC_STORE_RELAXED(field(option), value);
    return 0;
}
