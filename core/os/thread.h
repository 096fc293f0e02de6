/* A thread of the library's own that the C library does not know.
 *
 * The C library's threads are made under its locks, and by malloc, so a call of free could not
 * start one: its caller may hold these locks. And a process would not end with its own last thread,
 * but wait for ours. So this one is made by the system alone. Its thread-local variables lie in
 * pages of their own, at the same distances from the thread pointer as everybody's; there are this
 * library's and errno, and no others. So it calls no function of the C library that another library
 * may have replaced or patched: os/ asks the system in its place, or refuses.
 */
#ifndef OS_THREAD_H
#define OS_THREAD_H

#include "base/macros.h"

/* The calling thread is this one. */
bool os_thread_is_bare(void);

/* Starts it in `run`, which returns at its end. `variables` are thread-local ones of the caller: of
 * the library's, one with an initial value and one without. All signals are blocked in it. False:
 * there is one; or the system refuses; or a filter of system calls may kill the process for it; or
 * the calling thread is one of another process, which shares the memory (vfork): the thread would
 * end with that. For one thread at a time, without locks. */
SLOW_PATH bool os_thread_start(void (*run)(void), const void *const variables[2]);

/* In the constructor, and in a child of fork, which has none. */
void os_thread_begin_process(void);

/* In the constructor, if the thread may be wanted: notes the filters that are in force, as those of
 * a container are, unless other threads may be older. 30 microseconds. Without it, each filter is
 * one that the program set. */
SLOW_PATH void os_thread_begin_program(void);

#endif
