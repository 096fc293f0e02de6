/* What an environment must come to, by the words of docs/options.md: see options_expected.c. */
#ifndef FUZZ_OPTIONS_EXPECTED_H
#define FUZZ_OPTIONS_EXPECTED_H

#include <stdbool.h>
#include <stddef.h>

enum {
#define OPTION(name, ...) EXPECTED_##name,
#include "base/options.def"
#undef OPTION
    EXPECTED_COUNT
};

struct option_row {
    const char *name;
    const char *unit;
    const char *words;
    bool settable;
    long min, max;
    long presets[4];
};

extern const struct option_row option_rows[EXPECTED_COUNT];

/* Index of the option with this name; -1: there is none. */
int option_row_find(const char *name, size_t length);

struct expected {
    long values[EXPECTED_COUNT];
    unsigned complaints;    /* lines on stderr */
    const char *stats_file; /* NULL: none */
};

/* `environment` ends with NULL. */
struct expected options_expected(char *const *environment);

#endif
