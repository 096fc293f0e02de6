/* Options: the policy by name, for settings from outside (api/environment.c), the program and
 * reports.
 *
 * A wrong setting is reported in one line that names the right ones, and the default holds.
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

/* No option, and the file with options, for complaints. */
enum { OPTION_NONE = -1, OPTION_FILE = -2 };

/* The option with the name of this length; OPTION_NONE: there is none. */
int options_find(const char *name, size_t length);

/* Sets the option to the value in the text, or complains. */
void options_set_text(int option, const char *value, size_t length);

/* Sets the place of the settings that are read next, with which complaints begin: a line of a file;
 * NULL: the environment. */
void options_read_from(const char *file, unsigned line);
bool options_read_from_file(void);

/* Writes a complaint to stderr, a line: "hakmem: ", unless it is of the file "option ", the pieces,
 * and, for an option, the value that it keeps. Not in a program with raised privileges, whose
 * stderr may be anything. */
#define options_complain(stays, ...)                                                               \
    options_complain_of((const char *const[]){__VA_ARGS__, NULL}, stays)
void options_complain_of(const char *const *pieces, int stays);

/* The part of foreign text that a complaint shows. */
struct shown {
    char text[65];
};
const char *options_shown(struct shown *shown, const char *foreign, size_t length);

/* The option `fallback`, which takes effect only if the C library's functions are found. */
bool options_fallback_wanted(void);

/* As hakmem_option_get and hakmem_option_set. */
int options_get(const char *name, long *value);
int options_set(const char *name, long value);

/* Name and value of an option, for reports: a word if the option takes words. */
const char *options_name(unsigned option);
void options_print_value(struct text *text, unsigned option);
bool options_takes_word(unsigned option);

#endif
