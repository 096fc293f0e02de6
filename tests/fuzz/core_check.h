/* What holds in the core whenever no call is on its way: see core_check.c. */
#ifndef FUZZ_CORE_CHECK_H
#define FUZZ_CORE_CHECK_H

#include <stdint.h>

/* Walks over all structures, and tells what the statistics count as live. */
void core_check(uint64_t *live_blocks, uint64_t *live_bytes);

/* Fails unless all memory has come back, after all blocks were freed, all threads have ended, and
 * a purge. */
void core_check_empty(void);

/* The first word of a freed block. */
void *core_mark(void);

#endif
