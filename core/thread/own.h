/* Threads of the library's own, each for one task, after which it ends. */
#ifndef THREAD_OWN_H
#define THREAD_OWN_H

#include "base/macros.h"

/* Starts a detached thread with a small stack, in which no signal handler of the program runs.
 * Returns 0, or the error; ENOSYS: the program, statically linked, has no threads. To be called
 * without locks; keeps errno. */
SLOW_PATH int own_thread_start(void *(*run)(void *argument), void *argument);

#endif
