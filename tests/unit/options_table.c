/* Prints the two tables of options that the README holds, from core/base/options.def: what each
 * option is, and what the presets make of it. options_table.py puts them in place. */
#include <stdio.h>
#include <string.h>

enum { PRESETS = 3 };

struct row {
    const char *name, *unit, *words, *help;
    int settable;
    long min, max, preset[PRESETS];
};

static const struct row rows[] = {
#define OPTION(name, unit, words, settable, min, max, speed, balanced, lean, help)                 \
    {#name, unit, words, help, settable, min, max, {speed, balanced, lean}},
#include "base/options.def"
#undef OPTION
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static void print_variable(const char *name)
{
    printf("`HAKMEM_");
    for (; *name; name++)
        putchar(*name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name);
    printf("`");
}

/* The n-th word of a list separated by blanks. */
static void print_word(const char *words, long n)
{
    while (n-- > 0)
        words += strcspn(words, " ") + 1;
    printf("%.*s", (int)strcspn(words, " "), words);
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
        printf("%ld..%ld", row->min, row->max);
        return;
    }
    for (long value = row->min; value <= row->max; value++) {
        printf("%s", value > row->min ? ", " : "");
        print_word(row->words, value);
    }
}

static void print_options(void)
{
    printf("| Variable | Unit | Default | Values | Meaning |\n|---|---|---|---|---|\n");
    for (int i = 0; i < ROWS; i++) {
        printf("| ");
        print_variable(rows[i].name);
        printf(" | %s | ", rows[i].unit);
        print_value(&rows[i], rows[i].preset[1]);
        printf(" | ");
        print_range(&rows[i]);
        printf(" | %s |\n", rows[i].help);
    }
}

/* Options that are the same in all presets, and the preset itself, have no place in this one. */
static void print_presets(void)
{
    printf("| Option | speed | balanced | lean |\n|---|---|---|---|\n");
    for (int i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        if (strcmp(row->name, "preset") == 0 ||
            (row->preset[0] == row->preset[1] && row->preset[1] == row->preset[2]))
            continue;
        printf("| `%s`", row->name);
        for (int preset = 0; preset < PRESETS; preset++) {
            printf(" | ");
            print_value(row, row->preset[preset]);
            if (*row->unit)
                printf(" %s", row->unit);
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
