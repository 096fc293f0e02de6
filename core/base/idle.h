/* The unneeded part of an amount: its minimum since the last question. Each watcher asks at moments
 * of its own. The lock of the amount guards it. */
#ifndef BASE_IDLE_H
#define BASE_IDLE_H

#include "base/macros.h"

enum idle_watcher { IDLE_SINCE_TICK, IDLE_SINCE_GROWTH, IDLE_WATCHERS };

struct idle {
    size_t least[IDLE_WATCHERS];
};

/* To be called when the amount has fallen. */
ALWAYS_INLINE void idle_lower(struct idle *idle, size_t amount)
{
    for (int i = 0; i < IDLE_WATCHERS; i++)
        idle->least[i] = size_min(idle->least[i], amount);
}

/* The idle part since the watcher's last call, now that the amount is this. */
ALWAYS_INLINE size_t idle_ask(struct idle *idle, enum idle_watcher watcher, size_t amount)
{
    size_t least = idle->least[watcher];
    idle->least[watcher] = amount;
    return least;
}

#endif
