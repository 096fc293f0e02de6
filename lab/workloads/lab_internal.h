/* What the files of the common part share among themselves. Workloads include lab.h alone. */
#ifndef LAB_INTERNAL_H
#define LAB_INTERNAL_H

#include "lab.h"
#include <stdio.h>

/* The clock by which calls are timed. */
enum lab_clock {
    LAB_UNTIMED,
    LAB_WALL,     /* to the nanosecond, but time without a processor counts */
    LAB_PROCESSOR /* of the calling thread: a system call, but what the scheduler does is left out
                   */
};

/* The program and its command line: written by lab_begin(), constant afterwards. */
struct lab_program {
    const char *workload;
    const struct lab_flag *flags;
    size_t flag_count;
    uint64_t seed;
    uint64_t latency; /* enum lab_clock */
};

extern struct lab_program lab_program;

/* What the report is made of: written by the main thread, the clock under the lock of lab.c. */
struct lab_outcome {
    struct lab_recorder total;
    uint64_t measured_ns;
};

extern struct lab_outcome lab_outcome;

/* The rows that every table of flags has besides its own. */
extern const struct lab_flag lab_common_flags[];
extern const size_t lab_common_flag_count;

/* Carry an outcome from a child process to its parent, which adds it to its own. Both have the
 * same flag --latency. */
void lab_outcome_send(const struct lab_outcome *outcome, int file);
void lab_outcome_receive(struct lab_outcome *outcome, int file);

/* Gives an empty recorder its histograms of latencies, with --latency. */
void lab_recorder_open(struct lab_recorder *recorder);

/* Adds `from` to `into`, and gives back the histograms of `from`. */
void lab_recorder_close(struct lab_recorder *into, struct lab_recorder *from);

/* Finds out how fast the clock of the latencies runs and what reading it costs. */
void lab_latency_begin(void);

/* Writes the histograms as the JSON value of latency_ns. `latency` may be NULL. */
void lab_latency_write(FILE *out, const struct lab_latency *latency);

/* Reports the longest call and the 99.99th percentile as figures where they are processor time,
 * and fails if calls were timed that are no operations. */
void lab_latency_figures(const struct lab_recorder *total);

#endif
