/* A second reading of docs/options.md, to compare the parser with. Slow and plain: it copies
 * every piece into a string of its own before it looks at it. */
#include "options_expected.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES_MAX = 4096, VALUE_DIGITS_MAX = 12 };

const struct option_row option_rows[EXPECTED_COUNT] = {
#define OPTION(name, unit, words, settable, min, max, speed, balanced, lean, hardened, help)       \
    {#name, unit, words, settable, min, max, {speed, balanced, lean, hardened}},
#include "base/options.def"
#undef OPTION
};

int option_row_find(const char *name, size_t length)
{
    for (int i = 0; i < EXPECTED_COUNT; i++)
        if (strlen(option_rows[i].name) == length &&
            strncmp(option_rows[i].name, name, length) == 0)
            return i;
    return -1;
}

static bool is_number(const char *text)
{
    size_t digits = strspn(text, "0123456789");

    return digits > 0 && text[digits] == '\0';
}

/* The position of the word among those that the option knows. */
static bool read_word(const struct option_row *row, const char *text, long *value)
{
    char *words = strdup(row->words), *rest = words;
    bool known = false;

    for (*value = 0; !known && (rest = strtok(rest, " ")) != NULL; rest = NULL)
        if (strcmp(rest, text) == 0)
            known = true;
        else
            ++*value;
    free(words);
    return known;
}

/* How many of the unit a K, M or G behind a number stands for; 0: nothing there. */
static long letter_means(const char *unit, char letter)
{
    bool kib = strcmp(unit, "KiB") == 0, mib = strcmp(unit, "MiB") == 0;

    if ((kib && letter == 'K') || (mib && letter == 'M'))
        return 1;
    if ((kib && letter == 'M') || (mib && letter == 'G'))
        return 1024;
    return kib && letter == 'G' ? 1024 * 1024 : 0;
}

static bool read_number(const struct option_row *row, const char *text, long *value)
{
    char number[VALUE_DIGITS_MAX + 2], *last;
    bool negative = text[0] == '-';
    const char *digits = text + negative;
    long factor;

    digits += strspn(digits, "0") - (digits[0] == '0');
    if (strlen(digits) > VALUE_DIGITS_MAX)
        return false;
    strcpy(number, digits);
    last = number + strlen(number) - (number[0] != '\0');
    factor = letter_means(row->unit, *last);
    if (factor)
        *last = '\0';
    if (!is_number(number))
        return false;
    *value = strtol(number, NULL, 10) * (factor ? factor : 1) * (negative ? -1 : 1);
    return *value >= row->min && *value <= row->max;
}

/* A value that is set; or a complaint, and all stays. */
static void set(struct expected *expected, int option, const char *text)
{
    const struct option_row *row = &option_rows[option];
    long value = 0;

    if (!(row->words[0] ? read_word(row, text, &value) : read_number(row, text, &value))) {
        expected->complaints++;
        return;
    }
    expected->values[option] = value;
    for (int i = 0; option == EXPECTED_preset && i < EXPECTED_COUNT; i++)
        if (i != EXPECTED_fallback && i != EXPECTED_stats)
            expected->values[i] = option_rows[i].presets[value];
}

static void read_entry(struct expected *expected, char *entry, bool presets)
{
    char *equals = strchr(entry, '=');
    size_t name_length = equals ? (size_t)(equals - entry) : strlen(entry);
    int option = option_row_find(entry, name_length);

    if (entry[0] == '\0')
        return;
    if (option >= 0 && equals && equals[1] != '\0') {
        if ((option == EXPECTED_preset) == presets)
            set(expected, option, equals + 1);
    } else if (!presets) {
        expected->complaints++;
    }
}

/* HAKMEM_OPTIONS: entries between commas. A preset comes before all others. */
static void read_list(struct expected *expected, const char *list, bool presets)
{
    char *copy = strdup(list), *entry = copy;

    while (entry) {
        char *comma = strchr(entry, ',');
        if (comma)
            *comma = '\0';
        read_entry(expected, entry, presets);
        entry = comma ? comma + 1 : NULL;
    }
    free(copy);
}

/* The value of HAKMEM_<name in capitals>; NULL when it is not set, or empty. */
static const char *variable(char *const *environment, const char *name)
{
    char wanted[64];
    size_t length;

    snprintf(wanted, sizeof wanted, "HAKMEM_%s=", name);
    for (char *c = wanted; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    length = strlen(wanted);
    for (; *environment; environment++)
        if (strncmp(*environment, wanted, length) == 0)
            return (*environment)[length] ? *environment + length : NULL;
    return NULL;
}

static void read_variable(struct expected *expected, char *const *environment, int option)
{
    const char *value = variable(environment, option_rows[option].name);

    if (value)
        set(expected, option, value);
}

/* A variable that is none of ours but looks so. An empty one is none at all. */
static bool is_mistaken(const char *entry)
{
    char *name = strdup(entry + strlen("HAKMEM_"));
    const char *equals = strchr(entry, '=');
    bool known;

    name[strcspn(name, "=")] = '\0';
    for (char *c = name; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    known = option_row_find(name, strlen(name)) >= 0 || strcmp(name, "options") == 0 ||
            strcmp(name, "stats_file") == 0 || strcmp(name, "record_file") == 0 ||
            strcmp(name, "crash_file") == 0 || strcmp(name, "profile_file") == 0;
    free(name);
    return !known && equals && equals[1] != '\0';
}

struct expected options_expected(char *const *environment)
{
    struct expected expected = {.complaints = 0};
    const char *list = variable(environment, "options");
    const char *path = variable(environment, "stats_file");
    const char *others[] = {
        variable(environment, "record_file"), variable(environment, "crash_file")};

    for (int i = 0; i < EXPECTED_COUNT; i++)
        expected.values[i] = option_rows[i].presets[HAKMEM_HARDENED ? 3 : 1];
    if (list)
        read_list(&expected, list, true);
    read_variable(&expected, environment, EXPECTED_preset);
    if (list)
        read_list(&expected, list, false);
    for (int i = 0; i < EXPECTED_COUNT; i++)
        if (i != EXPECTED_preset)
            read_variable(&expected, environment, i);
    /* The hardened library is so under each preset. */
    expected.values[EXPECTED_hardened] |= HAKMEM_HARDENED;
    if (path && strlen(path) >= PATH_BYTES_MAX)
        expected.complaints++;
    else if (path)
        expected.stats_file = path;
    for (int i = 0; i < 2; i++)
        expected.complaints += others[i] && strlen(others[i]) >= PATH_BYTES_MAX;
    for (; *environment; environment++)
        expected.complaints += is_mistaken(*environment);
    return expected;
}
