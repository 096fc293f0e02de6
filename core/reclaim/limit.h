/* Purging near a limit on memory.
 *
 * What bounds: the option `limit_mib` and the control group, for what is resident; RLIMIT_AS and
 * RLIMIT_DATA, for what is mapped. How much there is, is not asked of the system, but follows from
 * what the layers count and what the process had besides at the start. Between two looks at that,
 * what was taken is added up: only when it could have come near a limit, a tenth below it, there is
 * another look. Then free pages and cached blocks go until it is below; if they are too few,
 * everything goes that is free wherever it lies, but the less often the less that gave.
 *
 * The control group is read once, with the first heap: later a filter of system calls may kill who
 * opens a file. With `limit_mib` a tick reads it again, and what is resident, once in a while.
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

/* What may be resident; 0: no limit is known. */
size_t limit_bytes(void);

/* Times that memory was given back because a limit was near. */
uint64_t limit_purges(void);

#endif
