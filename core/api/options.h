/* Options: the policy by name, for what is set from outside (api/environment.c), the program and
 * reports.
 *
 * What is wrong is reported in one line that says what would be right, and the default holds.
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

/* The option with the name of this length; -1 when there is none. */
int options_find(const char *name, size_t length);

/* Gives the option the value that is written there, or complains. */
void options_set_text(int option, const char *value, size_t length);

/* Where the settings stand that are read from now on, which complaints begin with: a line of a
 * file; NULL: in the environment. */
void options_read_from(const char *file, unsigned line);
bool options_read_from_file(void);

/* Begins a complaint, a line with "hakmem: option ", and ends it, and writes it to stderr: but not
 * that of a program with raised privileges, which may be anything. */
void options_begin_complaint(struct text *text, char *buffer, size_t size);
void options_complain(struct text *text);

/* "; it stays VALUE": the end of a complaint about an option. */
void options_say_it_stays(struct text *text, int option);

/* The option `fallback`, which takes effect only when the C library's functions are found. */
bool options_fallback_wanted(void);

/* As hakmem_option_get and hakmem_option_set. */
int options_get(const char *name, long *value);
int options_set(const char *name, long value);

/* Name and value of an option, for reports: a word where the option takes words. */
const char *options_name(unsigned option);
void options_print_value(struct text *text, unsigned option);
bool options_takes_word(unsigned option);

#endif
