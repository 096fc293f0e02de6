/* What holds in the core whenever no call is on its way: see core_check.c. */
#ifndef FUZZ_CORE_CHECK_H
#define FUZZ_CORE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct core_counts {
    uint64_t blocks, bytes; /* that the statistics count as live */
    uint64_t asked;         /* bytes that were asked for, by the records of the hardened preset */
};

/* What a process begins with: reads the environment, and does what it asks of the heap. Returns
 * whether the hardened preset is on. */
bool core_start(void);

/* The end of a process: looks at all that waits, and lets it go. */
void core_stop(void);

/* Walks over all structures, and counts. */
void core_check(struct core_counts *counts);

/* Fails unless so much is left of the live block from the address on, or, if that need not be
 * `known`, nobody can tell. */
void core_check_object(const void *address, size_t rest, bool known);

/* Fails unless all memory has come back, after all blocks were freed, all threads have ended, and
 * a purge. */
void core_check_empty(void);

/* The first word of a freed block. */
void *core_mark(void);

#endif
