/* See perturb.h. */
#include "api/perturb.h"

#include "hardened.h"
#include "thread/idle.h"

int perturb;

void perturb_set(int value)
{
    /* There all that is free is zero, and all that is handed out. */
    if (HARDENED)
        return;
    ATOMIC_STORE_RELAXED(&perturb, value);
    idle_stay_parked(value != 0);
    /* This thread's heap is parked on the way out, or unparked on the way in. */
    struct heap *heap = heap_enter();
    if (heap)
        heap_leave(heap);
}
