/* Options: from the environment into the policy, and later through hakmem_option_set.
 *
 * HAKMEM_<NAME>=value sets one option; HAKMEM_OPTIONS=name=value,name=value several. A bad name or
 * value is reported in one line that gives the nearest good one, and the default holds.
 * The environment is read once, by the library's constructor, and not at all in
 * programs that run with more rights than their caller (AT_SECURE).
 */
#ifndef API_OPTIONS_H
#define API_OPTIONS_H

#include "base/text.h"

enum {
#define OPTION(name, ...) OPTION_##name,
#include "base/options.def"
#undef OPTION
    OPTION_COUNT
};

/* Reads the environment. */
void options_read(void);

/* The option `fallback`, which takes effect only when the C library's functions are found. */
bool options_fallback_wanted(void);

/* As hakmem_option_get and hakmem_option_set. */
int options_get(const char *name, long *value);
int options_set(const char *name, long value);

/* Name and value of an option, for reports: a word where the option takes words. */
const char *options_name(unsigned option);
void options_print_value(struct text *text, unsigned option);
bool options_takes_word(unsigned option);

/* The file that statistics are written to at exit; NULL: none. HAKMEM_STATS_FILE, %p is the
 * process id. */
const char *options_stats_file(void);

#endif
