/* Fork: repairs structures, opens locks and frees the heaps of missing threads in a child. */
#ifndef THREAD_FORK_H
#define THREAD_FORK_H

#include "base/macros.h"

/* Prepares for children of every kind; part of the initialisation. */
void fork_start(void);

/* Registers handlers with the C library; called once, from the library's constructor. */
void fork_init(void);

/* Whether the calling thread, interrupted by a signal handler, holds one of the allocator's locks.
 */
bool fork_holds_lock(void);

#endif
