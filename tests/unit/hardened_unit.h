/* What the unit tests of the hardened library share: blocks are made and freed as by malloc and
 * free, and counted. */
#ifndef UNIT_HARDENED_UNIT_H
#define UNIT_HARDENED_UNIT_H

#include "unit.h"

#include "base/policy.h"
#include "hardened/front.h"
#include "report/stats.h"

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

static inline uint64_t live_blocks(void)
{
    struct snapshot now;
    stats_collect(&now);
    return now.total.live_blocks;
}

#endif
