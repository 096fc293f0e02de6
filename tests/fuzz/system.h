/* The operating system as a fuzz target wants it: see system.c.
 *
 * Thread rule: a target runs one thread at a time, and hands over by semaphores. */
#ifndef FUZZ_SYSTEM_H
#define FUZZ_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SYSTEM_WRITTEN_BYTES = 1 << 20, SYSTEM_PATH_BYTES = 8192 };

struct system {
    uint64_t now_ms;            /* the clock, which only the target moves */
    uint64_t slept_ms;          /* the core has waited for so long; its exact clock moves by that */
    unsigned cpus;              /* os_cpu_count */
    size_t address_space_bytes; /* os_address_space_limit */
    bool scattered;             /* mappings of whole regions lie far apart */
    bool unmarked;              /* there are no marks that make pages untouchable */
    size_t mappings;            /* os_mapping_limit */
    uint64_t random;            /* what os_random gives follows from it; 0: it gives nothing */
    unsigned grants;            /* calls that succeed before those that are refused */
    unsigned refusals_left;     /* calls that are refused then */
    uint64_t refusals;          /* calls refused so far */
    bool captures;              /* what is written goes to `written` and not to stderr */
    size_t written_length;      /* bytes, also of those that did not fit */
    char written[SYSTEM_WRITTEN_BYTES];
    char created_path[SYSTEM_PATH_BYTES]; /* the last file that os_create_file was to make */
};

extern struct system fuzz_system;

/* Undoes all that the core did: unmaps what it mapped, gives its variables their first values. No
 * other thread may be left that has called the core; the calling one, for which the library's
 * constructor may have made a heap, forgets it. */
void system_reset(void);

#endif
