/* Prints the two tables of docs/options.md from core/base/options.def: what each option is, and
 * what the presets make of it. options_table.py puts them in place. */
#include <stdio.h>
#include <string.h>

enum { PRESETS = 4, BALANCED = 1 };

struct row {
    const char *name, *unit, *words, *help;
    int settable;
    long min, max, preset[PRESETS];
};

static const struct row rows[] = {
#define OPTION(name, unit, words, settable, min, max, speed, balanced, lean, hardened, help)       \
    {#name, unit, words, help, settable, min, max, {speed, balanced, lean, hardened}},
#include "base/options.def"
#undef OPTION
};

enum { ROWS = sizeof rows / sizeof rows[0] };

/* The n-th word of a list separated by blanks. */
static void print_word(const char *words, long n)
{
    while (n-- > 0)
        words += strcspn(words, " ") + 1;
    printf("`%.*s`", (int)strcspn(words, " "), words);
}

static void print_value(const struct row *row, long value)
{
    if (*row->words)
        print_word(row->words, value);
    else
        printf("%ld", value);
}

static void print_range(const struct row *row)
{
    if (!*row->words) {
        printf("%ld to %ld", row->min, row->max);
        return;
    }
    for (long value = row->min; value <= row->max; value++) {
        printf("%s", value > row->min ? ", " : "");
        print_word(row->words, value);
    }
}

static void print_options(void)
{
    printf("| Option | Unit | Values | Default | While running | Meaning |\n");
    printf("|---|---|---|---|---|---|\n");
    for (int i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        printf("| `%s` | %s%s| ", row->name, row->unit, *row->unit ? " " : "");
        print_range(row);
        printf(" | ");
        print_value(row, row->preset[BALANCED]);
        printf(" | %s | %s |\n", row->settable ? "yes" : "no", row->help);
    }
}

/* The options that presets leave alone, and the preset itself, have no place in the second one. */
static int is_in_presets(const struct row *row)
{
    return strcmp(row->name, "preset") != 0 &&
           (row->preset[0] != row->preset[1] || row->preset[1] != row->preset[2] ||
            row->preset[2] != row->preset[3]);
}

static void print_presets(void)
{
    printf("| Option | `speed` | `balanced` | `lean` | `hardened` |\n|---|---|---|---|---|\n");
    for (int i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        if (!is_in_presets(row))
            continue;
        printf("| `%s`", row->name);
        for (int preset = 0; preset < PRESETS; preset++) {
            printf(" | ");
            print_value(row, row->preset[preset]);
        }
        printf(" |\n");
    }
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "options") == 0)
        print_options();
    else if (argc == 2 && strcmp(argv[1], "presets") == 0)
        print_presets();
    else
        return 2;
    return 0;
}
