/* Giving everything back: see tick.h. The function itself, which layers below call too, is
 * declared in base/pressure.h. */
#ifndef RECLAIM_EVERYTHING_H
#define RECLAIM_EVERYTHING_H

#include "base/pressure.h"

/* False if the system would refuse `bytes` even after everything is given back: then trying again
 * is in vain. */
bool reclaim_may_make_room(size_t bytes);

struct heap;

/* For a thread that found no memory for `bytes`, neither in the system nor in free lists: gives
 * everything back, including the thread's own caches, which may hold many addresses. False: trying
 * again is in vain. With the heap entered. */
bool reclaim_for(struct heap *heap, size_t bytes);

#endif
