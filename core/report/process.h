/* Which process this is, for a report that stands among those of others. */
#ifndef REPORT_PROCESS_H
#define REPORT_PROCESS_H

#include "base/macros.h"

enum { PROGRAM_BYTES = 1024, COMMAND_BYTES = 2048 };

/* Fields that the system does not tell (/proc may be out of reach) are 0, or empty. */
struct process {
    int id, parent;
    uint64_t rss_bytes, peak_rss_bytes;
    size_t program_bytes, command_bytes; /* of those below */
    char program[PROGRAM_BYTES];         /* path of the executable */
    char command[COMMAND_BYTES];         /* the arguments, each ended by a NUL, or cut off */
};

void process_look(struct process *process);

/* The argument of the command behind `argument`, the first one after NULL; NULL after the last.
 * Sets its length: the last one may be cut off. */
const char *process_next_argument(
    const struct process *process, const char *argument, size_t *length);

#endif
