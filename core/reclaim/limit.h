/* Purging near a limit on memory.
 *
 * The option `limit_mib` and the control group bound resident memory, RLIMIT_AS and RLIMIT_DATA
 * mapped memory. The system is not asked how much there is: that follows from the counts of the
 * layers and from what the process had besides at the start. Between two looks at the sum, taken
 * memory is added up; only if it could have come near a limit, a tenth below it, there is another
 * look. Then free pages and cached blocks go until the sum is below; if they are too few, all free
 * memory goes, wherever it lies, but the less often the less that gave.
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

/* Put before the paths of the system's files: "", but for tests. */
extern const char *limit_root;

/* The option has changed. */
void limit_changed(void);

/* A tick: looks in any case. */
void limit_tick(uint64_t now_ms);

/* How much may be resident; 0: no limit is known. */
size_t limit_bytes(void);

/* Times that memory was given back because a limit was near. */
uint64_t limit_purges(void);

#endif
