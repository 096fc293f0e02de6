/* Describes the process in a report, to tell it from those of other processes. */
#ifndef REPORT_PROCESS_H
#define REPORT_PROCESS_H

#include "base/macros.h"

enum { PROGRAM_BYTES = 1024, COMMAND_BYTES = 2048 };

/* If /proc cannot be read, fields are 0 or empty. */
struct process {
    int id, parent;
    uint64_t rss_bytes, peak_rss_bytes;
    size_t program_bytes, command_bytes; /* of the two texts */
    char program[PROGRAM_BYTES];         /* path of the executable */
    char command[COMMAND_BYTES];         /* the arguments, each ended by a NUL, or cut off */
};

void process_look(struct process *process);

/* The parent's id, what is resident, and the most that was. */
int process_status(uint64_t *rss_bytes, uint64_t *peak_bytes);

/* The argument of the command behind `argument`; for NULL the first one, after the last NULL.
 * `*length`: in, that of `argument`; out, that of the result, of which the last may be cut off. */
const char *process_next_argument(
    const struct process *process, const char *argument, size_t *length);

#endif
