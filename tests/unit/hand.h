/* What the engine's hand does at the bins (reclaim/engine.h), for tests of these alone. */
#ifndef HAND_H
#define HAND_H

#include "slab/shard.h"
#include "slab/sweep.h"

/* Looks at all bins, in a round of growth or another. */
static inline void look_at_bins(bool grown)
{
    for (unsigned bin = 0; bin < shard_places(); bin++)
        if (sweep_may(bin))
            sweep_look(bin, grown);
}

/* A step in the first bin that has something to give; false: none has. */
static inline bool step_in_bins(void)
{
    for (unsigned number = 0; number < shard_places(); number++) {
        if (ATOMIC_LOAD_RELAXED(&bin_at(number)->sweeping)) {
            sweep_step(number, SIZE_MAX);
            return true;
        }
    }
    return false;
}

#endif
