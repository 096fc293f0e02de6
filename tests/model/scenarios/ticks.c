/* Ticks of the purge: one thread begins a tick, and others may go on with its work. */
#include "../../unit/hand.h"
#include "base/policy.h"
#include "base/pressure.h"
#include "checks/checks.h"
#include "engine/model.h"
#include "reclaim/engine.h"
#include "slab/shard.h"
#include "slab/sweep.h"
#include "span/page_heap.h"

/* ---- Pages ------------------------------------------------------------------------------------
 */

enum { FIRST_MS = 1000 };

/* More than a step purges: most of four superslabs. */
static void much_is_free(void)
{
    enum { UNITS = 30 };
    struct unit_run runs[4];
    CHECK(page_heap_init());
    shard_init(1);
    policy.purge_delay_ms = 1;
    for (unsigned i = 0; i < ARRAY_LENGTH(runs); i++)
        CHECK(page_heap_take(0, UNITS, 1, true, &runs[i]));
    for (unsigned i = 0; i < ARRAY_LENGTH(runs); i++)
        page_heap_put(runs[i].superslab, runs[i].run, UNITS * UNIT_PAGES);
    model_set_time(FIRST_MS);
    reclaim_tick(FIRST_MS);
}

static void come_by(void)
{
    model_set_time(FIRST_MS + 1);
    reclaim_tick(FIRST_MS + 1);
}

/* No work is forgotten. */
static void purged(void)
{
    for (unsigned i = 0; i < 4; i++)
        come_by();
    CHECK(page_heap_stats().dirty_free_pages * PAGE_SIZE <= pressure_bound(0));
    page_heap_check();
}

SCENARIO(ticks_pages) = {
    .name = "ticks_pages",
    .about = "two threads come by a round that is to purge pages, and one works",
    .prepare = much_is_free,
    .thread = {come_by, come_by},
    .finish = purged,
    .preemptions_max = 2};

/* ---- Sweeps -----------------------------------------------------------------------------------
 */

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
    look_at_bins(true);
}

static void sweep(void)
{
    step_in_bins();
}

/* A sweep that a tick has begun is not forgotten. */
static void no_sweep_left(void)
{
    bin_check_all();
    page_heap_check();
    while (step_in_bins())
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
