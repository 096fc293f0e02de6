/* Fork: a child finds sound structures, open locks, and the heaps of threads it lacks. */
#ifndef THREAD_FORK_H
#define THREAD_FORK_H

#include "base/macros.h"

/* Prepares for children of every kind; part of the initialisation. */
void fork_start(void);

/* Registers handlers with the C library; called once, from the library's constructor. */
void fork_init(void);

/* Whether the calling thread holds one of the allocator's locks, when a signal handler has
 * interrupted it. */
bool fork_holds_lock(void);

#endif
