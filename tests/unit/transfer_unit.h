/* What the tests of the transfer caches share: blocks past all caches, and a tick. */
#ifndef TRANSFER_UNIT_H
#define TRANSFER_UNIT_H

#include "unit.h"

#include "slab/shard.h"
#include "slab/sweep.h"
#include "slab/transfer.h"
#include "span/page_heap.h"

enum { MOST = 20000 };

static void *held[MOST];

/* Takes blocks off the stack of a bin. */
static inline unsigned take_stacked(
    unsigned shard, unsigned size_class, void **blocks, unsigned count)
{
    struct bin *bin = bin_of(shard, size_class);
    transfer_ask(bin);
    lock_acquire(&bin->lock);
    unsigned taken = transfer_take(bin, size_class, blocks, count);
    lock_release(&bin->lock);
    return taken;
}

/* Takes blocks of the class from the bins. */
static inline void refill(unsigned class, unsigned count)
{
    for (unsigned got = 0; got < count;)
        got += bin_refill(0, class, held + got, count - got, 1, REFILL_MAP);
}

static inline void flush(unsigned class, void **blocks, unsigned count)
{
    for (unsigned done = 0; done < count; done++)
        bin_flush(0, class, &blocks[done], 1);
}

/* A tick, and all of what it left to do; true when that was anything. */
static inline bool tick(void)
{
    bool any = false;
    for (unsigned cache = 0; cache < shard_places(); cache++) {
        unsigned before = bin_at(cache)->stacked;
        if (transfer_may(cache))
            while (transfer_step(cache))
                continue;
        any |= bin_at(cache)->stacked < before;
    }
    return any;
}

static inline int start(void **state)
{
    (void)state;
    return page_heap_init() ? 0 : -1;
}

#endif
