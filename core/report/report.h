/* Reports: the statistics as a table for people, as JSON, and as the XML of malloc_info.
 *
 * A report at exit goes to the standard error that the program was started with: many programs
 * close theirs, to check for errors, before the library's destructor runs, and its number may then
 * belong to another file.
 */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "base/text.h"
#include "report/process.h"

/* Appends all statistics and the effective configuration as one JSON object; with the process,
 * unless that is NULL. */
void report_json(struct text *text, const struct process *process);

/* Parts of JSON: appends a member and a comma; replaces the comma behind the last member. */
void json_number(struct text *text, const char *name, uint64_t value);
void json_close(struct text *text, const char *end);

/* Appends the XML of malloc_info. */
void report_xml(struct text *text);

/* Appends the table for people. */
void report_table(struct text *text, const struct process *process);

/* Makes report_json or report_table in memory of its own, and hands it to `take` with a NUL behind
 * it. Returns the result of `take`; false: there is no memory. */
bool report_make(
    void (*make)(struct text *, const struct process *),
    bool (*take)(void *to, const char *report, size_t length), void *to);

/* Prints the table to a file descriptor. */
void report_print(int fd);

/* Writes the JSON to a new file; %p in the path becomes the process id, %% a percent sign. A path
 * such as /dev/stdout names the descriptor, which stays open. Complains if it cannot. */
void report_write_file(const char *path);

/* Writes a line to the standard error of the start, if that is still open. */
void report_say(const char *line, size_t length);

/* Opens a path, resolved as above: a new file with these rights, or, if `*is_standing`, a
 * descriptor that the caller must not close. -1, with a complaint that names the option: it cannot.
 * Neither allocates nor waits. */
int report_open(const char *option, const char *path, int mode, bool *is_standing);

/* For the library's constructor: keeps the standard error for a report at exit. */
void report_start(void);

/* Keeps the standard error for lines written while the program runs, without a second descriptor: a
 * program that lists its descriptors must not see one more because it is recorded. */
void report_look(void);

/* For the constructor: handles the signal of the option `dump_signal`, which writes statistics and
 * live profile. */
void report_start_dumps(void);

/* For the destructor: writes the reports that the options ask for. */
void report_at_exit(void);

#endif
