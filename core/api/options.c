/* See options.h. */
#include "api/options.h"

#include <errno.h>
#include <string.h>

#include "base/policy.h"
#include "os/os.h"
#include "reclaim/limit.h"

enum { PRESETS = 4, NAME_SIZE = 16 };

struct option {
    char name[NAME_SIZE];
    char unit[4];
    bool settable;
    const char *words;
    long min, max;
    long preset[PRESETS];
};

#define OPTION(name, ...) _Static_assert(sizeof #name <= NAME_SIZE, "the table has room");
#include "base/options.def"
#undef OPTION

static const struct option table[OPTION_COUNT] = {
#define OPTION(name, unit, words, settable, min, max, speed, balanced, lean, hardened, help)       \
    {#name, unit, settable, words, min, max, {speed, balanced, lean, hardened}},
#include "base/options.def"
#undef OPTION
};

_Static_assert(sizeof policy == OPTION_COUNT * sizeof(long), "a field an option, in their order");

static long *field(unsigned option)
{
    return (long *)&policy + option;
}

static bool fallback_wanted; /* const after environment_read */

/* The word at `*list`, in a list separated by blanks, which moves on to the next; NULL: the list
 * ends. */
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

int options_find(const char *name, size_t length)
{
    for (int i = 0; i < OPTION_COUNT; i++)
        if (strlen(table[i].name) == length && memcmp(table[i].name, name, length) == 0)
            return i;
    return OPTION_NONE;
}

/* ---- Complaints ------------------------------------------------------------------------------ */

/* The place of the settings that are being read. The constructor only. */
static const char *source_file;
static unsigned source_line;

void options_read_from(const char *file, unsigned line)
{
    source_file = file;
    source_line = line;
}

bool options_read_from_file(void)
{
    return source_file != NULL;
}

void options_complain_of(const char *const *pieces, int stays)
{
    char buffer[256];
    struct text text;
    if (os_is_privileged())
        return;
    text_init(&text, buffer, sizeof buffer);
    text_string(&text, "hakmem: ");
    if (source_file) {
        text_string(&text, source_file);
        text_char(&text, ':');
        text_unsigned(&text, source_line);
        text_string(&text, ": ");
    }
    text_string(&text, stays == OPTION_FILE ? "" : "option ");
    for (; *pieces; pieces++)
        text_string(&text, *pieces);
    if (stays >= 0) {
        text_string(&text, "; it stays ");
        options_print_value(&text, (unsigned)stays);
    }
    text_char(&text, '\n');
    text_terminate(&text);
    os_write(STDERR, buffer, text_stored(&text));
}

const char *options_shown(struct shown *shown, const char *foreign, size_t length)
{
    struct text text;
    text_init(&text, shown->text, sizeof shown->text);
    text_foreign(&text, foreign, size_min(length, sizeof shown->text - 1));
    return text_terminate(&text);
}

/* Appends the allowed values of the option. */
static void print_range(struct text *text, const struct option *option)
{
    const char *words = option->words, *word;
    size_t length;
    if (*words) {
        text_string(text, "one of ");
        while ((word = next_word(&words, &length)) != NULL) {
            text_foreign(text, word, length);
            text_string(text, *words ? ", " : "");
        }
        return;
    }
    text_string(text, option->max - option->min == 1 ? "" : "a number from ");
    text_signed(text, option->min);
    text_string(text, option->max - option->min == 1 ? " or " : " to ");
    text_signed(text, option->max);
    text_string(text, *option->unit ? ", in " : "");
    text_string(text, option->unit);
}

static void complain_value(int option, const char *value, size_t length)
{
    char range[128];
    struct text text;
    struct shown shown;
    text_init(&text, range, sizeof range);
    print_range(&text, &table[option]);
    options_complain(
        option, table[option].name, " cannot be ", options_shown(&shown, value, length), ": it is ",
        text_terminate(&text));
}

/* ---- Values ---------------------------------------------------------------------------------- */

static bool parse_word(const char *words, const char *value, size_t length, long *parsed)
{
    const char *word;
    size_t word_length;
    for (*parsed = 0; (word = next_word(&words, &word_length)) != NULL; ++*parsed)
        if (word_length == length && memcmp(word, value, length) == 0)
            return true;
    return false;
}

/* By how many bits a letter behind a number moves it, which is in this unit: `100M`, where MiB are
 * meant, by none; without such a letter -1. */
static int parse_scale(const char *unit, char letter)
{
    static const char scales[] = "KMG";
    const char *meant = strchr(scales, *unit), *told = strchr(scales, letter);
    return *unit && letter && meant && told && told >= meant ? 10 * (int)(told - meant) : -1;
}

static bool parse_number(
    const struct option *option, const char *value, size_t length, long *parsed)
{
    int scale = length > 1 ? parse_scale(option->unit, value[length - 1]) : -1;
    length -= scale >= 0;
    bool negative = length > 0 && value[0] == '-', number = length > negative;
    long result = 0;
    for (size_t i = negative; i < length; i++) {
        number = number && value[i] >= '0' && value[i] <= '9';
        if (number && result <= option->max)
            result = result * 10 + (value[i] - '0');
    }
    result = scale > 0 ? result << scale : result;
    *parsed = negative ? -result : result;
    return number && *parsed >= option->min && *parsed <= option->max;
}

static void apply_preset(long preset)
{
    for (int i = 0; i < OPTION_COUNT; i++)
        if (i != OPTION_fallback && i != OPTION_stats && i != OPTION_record_mib)
            ATOMIC_STORE_RELAXED(field(i), table[i].preset[preset]);
}

void options_set_text(int option, const char *value, size_t length)
{
    const char *words = table[option].words;
    long parsed;
    bool good = *words ? parse_word(words, value, length, &parsed)
                       : parse_number(&table[option], value, length, &parsed);
    if (!good)
        complain_value(option, value, length);
    else if (option == OPTION_preset)
        apply_preset(parsed);
    else if (option == OPTION_fallback)
        fallback_wanted = parsed;
    else
        ATOMIC_STORE_RELAXED(field(option), parsed);
}

/* ---- Queries --------------------------------------------------------------------------------- */

bool options_fallback_wanted(void)
{
    return fallback_wanted;
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
        text_foreign(text, word, length);
    } else {
        text_signed(text, value);
    }
}

int options_get(const char *name, long *value)
{
    int option = options_find(name, strlen(name));
    if (option < 0)
        return ENOENT;
    *value = ATOMIC_LOAD_RELAXED(field(option));
    return 0;
}

int options_set(const char *name, long value)
{
    int option = options_find(name, strlen(name));
    if (option < 0)
        return ENOENT;
    if (!table[option].settable)
        return EPERM;
    if (value < table[option].min || value > table[option].max)
        return ERANGE;
    ATOMIC_STORE_RELAXED(field(option), value);
    if (option == OPTION_limit_mib)
        limit_changed();
    return 0;
}
