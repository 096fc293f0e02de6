/* Ticks of the purge: one thread begins a tick, and others may go on with its work. */
#include "checks/checks.h"
#include "engine/model.h"
#include "slab/shard.h"
#include "slab/sweep.h"
#include "span/page_heap.h"

/* So much that a tick begins a sweep: most of three slabs of the longest blocks. */
static void much_is_free_in_slabs(void)
{
    enum { LONG_BLOCKS = 24 };
    void *blocks[LONG_BLOCKS];
    unsigned longest = size_class_of(MID_MAX);
    CHECK(page_heap_init());
    shard_init(1);
    for (unsigned got = 0; got < LONG_BLOCKS;)
        got += bin_refill(0, longest, blocks + got, LONG_BLOCKS - got, 1, REFILL_MAP);
    for (unsigned i = 0; i < LONG_BLOCKS; i++)
        if (i % 8 != 0)
            bin_flush(0, longest, blocks + i, 1);
}

static void tick(void)
{
    sweep_tick(PRESSURE_TICK_GROWTH);
}

static void sweep(void)
{
    sweep_step();
}

/* A sweep that a tick has begun is not forgotten. */
static void no_sweep_left(void)
{
    bin_check_all();
    page_heap_check();
    while (sweep_step())
        continue;
    CHECK(!bin_of(0, size_class_of(MID_MAX))->sweeping);
}

SCENARIO(ticks_sweep) = {
    .name = "ticks_sweep",
    .about = "a tick begins a sweep that another thread goes on with",
    .prepare = much_is_free_in_slabs,
    .thread = {tick, sweep},
    .finish = no_sweep_left};

static void sweep_twice(void)
{
    sweep();
    sweep();
}

SCENARIO(ticks_sweep_again) = {
    .name = "ticks_sweep_again",
    .about = "two ticks, and a thread that sweeps twice",
    .prepare = much_is_free_in_slabs,
    .thread = {tick, sweep_twice, tick},
    .finish = no_sweep_left};
