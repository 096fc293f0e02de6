/* What the unit tests of the hardened preset share: it is turned on, blocks are made and freed as
 * by malloc and free, and counted. */
#ifndef UNIT_HARDENED_H
#define UNIT_HARDENED_H

#include "unit.h"

#include "api/hardened.h"
#include "base/policy.h"
#include "observe/stats.h"

static inline void *take(size_t size)
{
    void *block = hardened_alloc(size, MIN_ALIGNMENT, FORM_MALLOC);
    CHECK(block);
    return block;
}

static inline void give(void *block)
{
    hardened_free(block, FORM_MALLOC);
}

static inline int turn_on(void **state)
{
    (void)state;
    policy.hardened = 1;
    hardened_start();
    return !hardened_is_on();
}

static inline uint64_t live_blocks(void)
{
    struct snapshot now;
    stats_collect(&now);
    return now.total.live_blocks;
}

#endif
