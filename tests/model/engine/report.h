/* Failures, in words. */
#ifndef MODEL_REPORT_H
#define MODEL_REPORT_H

#include <stdbool.h>
#include <stdint.h>

/* File and line of an address in the code, in a buffer that is used in turns. */
const char *report_place(const void *code);

_Noreturn void report_race(
    const void *word, const void *old, bool old_writes, int old_thread, const void *new,
    bool new_writes);

#endif
