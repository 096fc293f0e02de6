/* Purging near a limit on memory.
 *
 * The option `limit_mib` and the control group bound resident memory, RLIMIT_AS and RLIMIT_DATA
 * mapped memory. The memory in use is the sum of the layers' counts and of the other memory that
 * the process had at the start. Between two looks at the sum, taken memory is added up; only if the
 * sum could be near a limit, by one part in NEAR_PART, another look follows. Then free pages and
 * cached blocks go until the sum is below. A program may never touch what it got, and no more is
 * resident than ever was and what was taken since the last look: only if that is near the limit,
 * too, long blocks are no longer cached, and free memory inside caches and slabs goes, once for
 * each 64th of the limit that was taken.
 *
 * The control group is read once, with the first heap: later a filter of system calls may kill a
 * thread that opens a file. With `limit_mib` a tick reads it again, and resident memory, once in a
 * while.
 *
 * No lock of its own: the words of state are atomic, and a race costs a superfluous look.
 */
#ifndef RECLAIM_LIMIT_H
#define RECLAIM_LIMIT_H

#include "base/pressure.h"

/* Precedes the paths of the system's files: "", except in tests. */
extern const char *limit_root;

/* To be called when the option has changed. */
void limit_changed(void);

/* While there is a limit, after `bytes` of non-resident memory were taken, and before they are
 * touched: gives memory back if the limit is near. */
void limit_taken(size_t bytes);

/* A tick: looks in any case. */
void limit_tick(uint64_t now_ms);

/* The limit on resident memory; 0: none is known. */
size_t limit_bytes(void);

/* Times that memory was given back because a limit was near. */
uint64_t limit_purges(void);

/* Bytes in use, free ones with memory, and mapped ones, as the layers count them. */
void limit_count(size_t *used, size_t *free, size_t *mapped);

#endif
