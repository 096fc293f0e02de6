/* The Python functions that a thread is in (CPython 3.11 to 3.13), for stacks that are logged.
 *
 * They are objects of the interpreter, in a list that begins at the thread's state. The thread that
 * allocates is in them all, so they stay meanwhile. Nothing of Python is called but
 * PyGILState_GetThisThreadState, which is pthread_getspecific; every read is checked, and no code
 * is believed that does not say that it is some. Only an interpreter is known that is the program,
 * or was loaded with it.
 *
 * A place is a function and an instruction in it. It has a number among the sites, since it is
 * found, logged and kept like one, and stands in a stack as LOG_PYTHON and that number.
 */
#ifndef TRACE_PYTHON_H
#define TRACE_PYTHON_H

#include "base/macros.h"

/* The innermost frame of the calling thread; 0: it has none, or nothing is logged. */
uintptr_t python_frame(void);

/* Whether the code is that by which Python functions run, or close behind. */
bool python_runs(uintptr_t pc);

/* Stores the places of the frame and those that led to it, `most` at most, and logs those that the
 * log does not know. Returns their number. */
unsigned python_places(uintptr_t frame, uintptr_t *places, unsigned most);

#endif
