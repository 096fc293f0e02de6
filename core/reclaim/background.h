/* The helper: a thread that gives memory back in the program's place, also while all of its own
 * threads sleep. On request only (option `background`).
 *
 *     none  --a slow path finds work-->  works and rests  --all is given-->  ends  --1 ms-->  none
 *                                               ^                            |
 *                                               +--- more is found meanwhile +
 *
 * It exists only while there is something to give back. It waits without any lock and runs no
 * signal handler. The C library does not know it (os/thread.h), so the process ends without it. A
 * child of fork has none until it needs one.
 */
#ifndef RECLAIM_BACKGROUND_H
#define RECLAIM_BACKGROUND_H

#include "base/macros.h"

/* For slow paths: true if the helper does the work of the engine; it may start now. */
SLOW_PATH bool background_works(void);

/* After a round of the engine: a helper that the system refused may be tried again. */
void background_try_again(void);

#endif
