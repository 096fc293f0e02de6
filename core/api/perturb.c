/* See perturb.h. */
#include "api/perturb.h"

#include "hardened.h"
#include "scope/scope.h"
#include "thread/idle.h"

int perturb;

void perturb_set(int value)
{
    /* There, free blocks and new blocks are always zero. */
    if (HARDENED)
        return;
    ATOMIC_STORE_RELAXED(&perturb, value);
    idle_stay_parked(value != 0);
    if (SCOPES)
        scope_shut_caches();
    /* Parks this thread's heap on the way out, or unparks it on the way in. */
    struct heap *heap = heap_enter();
    if (heap)
        heap_leave(heap);
}
