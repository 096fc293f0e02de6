/* Reports: the statistics as a table for people, as JSON, and as the XML of malloc_info.
 *
 * A report at exit goes to the standard error that the program was started with: programs close
 * theirs before the library's destructor runs, to see whether their last words arrived, and then
 * its number may belong to another file.
 */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "base/text.h"
#include "report/process.h"

/* Appends all statistics and the effective configuration as one JSON object; with the process
 * unless that is NULL. */
void report_json(struct text *text, const struct process *process);

/* Appends the XML that malloc_info promises. */
void report_xml(struct text *text);

/* Appends the table for people. */
void report_table(struct text *text, const struct process *process);

/* Makes one of those two in memory of its own and hands it to `take`, with a NUL behind it. What
 * that returns; false: there is no memory. */
bool report_make(
    void (*make)(struct text *, const struct process *),
    bool (*take)(void *to, const char *report, size_t length), void *to);

/* Prints the table to a file descriptor. */
void report_print(int fd);

/* Writes the JSON to a new file; %p in the path becomes the process id, %% a percent sign. A path
 * such as /dev/stdout stands for the descriptor, which stays open and as it is. Complains when it
 * cannot. */
void report_write_file(const char *path);

/* Writes a line to that standard error, if it still is one. */
void report_say(const char *line, size_t length);

/* Opens what a path stands for, with the percent signs resolved, as above: a new file, or a
 * descriptor that is not to be closed, as `is_standing` then says. -1, with a complaint that names
 * the option, when it cannot. Neither allocates nor waits. */
int report_open(const char *option, const char *path, bool *is_standing);

/* From the library's constructor: keeps the standard error for a report at exit. */
void report_start(void);

/* The same for lines that are said while the program runs, without a descriptor of ours: a program
 * that lists its own must not see one more because it is recorded. */
void report_look(void);

/* From the constructor: the option `dump_signal`, on which statistics and live profile are written.
 */
void report_start_dumps(void);

/* From its destructor: what the options ask for. */
void report_at_exit(void);

#endif
