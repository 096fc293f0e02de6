/* Giving everything back: see tick.h. The function itself, which layers below call too, is
 * declared in base/pressure.h. */
#ifndef RECLAIM_EVERYTHING_H
#define RECLAIM_EVERYTHING_H

#include "base/pressure.h"

/* False if the system would refuse `bytes` even if everything were given back: then trying is not
 * worth the time. */
bool reclaim_may_make_room(size_t bytes);

struct heap;

/* No memory was left for so many bytes, neither in the system nor where others may take it: gives
 * everything back, with what this thread caches, which may be a lot of addresses. False: trying
 * again is not worth the time. With the heap entered. */
bool reclaim_for(struct heap *heap, size_t bytes);

#endif
