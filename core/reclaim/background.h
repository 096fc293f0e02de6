/* The helper: a thread that gives memory back in the program's place, also while all of its own
 * threads sleep. On request only (option `background`).
 *
 *     none  --a slow path finds work-->  works, waits, works ..  --all is given-->  none
 *       ^                                                                             |
 *       +-----------------------------------------------------------------------------+
 *
 * It exists only while there is something to give back. It waits without any lock, runs no signal
 * handler, and ends when it is the only thread that is left, since the process ends with the last.
 * A child of fork has none until it needs one.
 */
#ifndef RECLAIM_BACKGROUND_H
#define RECLAIM_BACKGROUND_H

#include "base/macros.h"

/* For slow paths, when the engine has work: true if the helper does it, which may start now. */
bool background_works(void);

#endif
