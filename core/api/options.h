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

/* The option with the name of this length; OPTION_NONE when there is none. */
enum { OPTION_NONE = -1 };
int options_find(const char *name, size_t length);

/* Gives the option the value that is written there, or complains. */
void options_set_text(int option, const char *value, size_t length);

/* Where the settings stand that are read from now on, which complaints begin with: a line of a
 * file; NULL: in the environment. */
void options_read_from(const char *file, unsigned line);
bool options_read_from_file(void);

/* Writes a complaint to stderr, a line: "hakmem: option ", the pieces, and, of an option, what
 * value it stays at. But not in a program with raised privileges, whose stderr may be anything. */
#define options_complain(stays, ...)                                                               \
    options_complain_of((const char *const[]){__VA_ARGS__, NULL}, stays)
void options_complain_of(const char *const *pieces, int stays);

/* As much of foreign text as a complaint shows. */
struct shown {
    char text[65];
};
const char *options_shown(struct shown *shown, const char *foreign, size_t length);

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
