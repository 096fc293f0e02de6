/* Reports: the statistics as a table for people, as JSON, and as the XML of malloc_info. */
#ifndef OBSERVE_REPORT_H
#define OBSERVE_REPORT_H

#include "base/text.h"

/* Appends all statistics and the effective configuration as one JSON object. */
void report_json(struct text *text);

/* Appends the XML that malloc_info promises. */
void report_xml(struct text *text);

/* Appends the table for people. */
void report_table(struct text *text);

/* Prints the table to a file descriptor. */
void report_print(int fd);

/* Writes the JSON to a new file; %p in the path becomes the process id. Complains on stderr when it
 * cannot. */
void report_write_file(const char *path);

/* Says so on stderr when no call was served at all. */
void report_warn_if_idle(void);

#endif
