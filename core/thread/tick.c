/* See tick.h. */
#include "thread/tick.h"

#include "base/atomic.h"
#include "os/os.h"
#include "slab/bin.h"
#include "slab/depot.h"
#include "thread/heap.h"
#include "thread/idle.h"

/* A call purges for this part of the time since the last one that did, but never for long: the
 * program waits for it. */
enum { PAUSE_SHARE = 4, PURGE_MAX_MS = 50 };

/* Pieces of work in a row that give nothing back: looks at slabs without a free page, which is this
 * library's own time and not the system's. */
enum { VAIN_MAX = 4 };

/* The last tick left work, in depots, bins or page heap; atomic, any thread: release on store pairs
 * with acquire on the exchange that takes it. */
static bool steps_left;

static uint64_t worked_ms; /* atomic relaxed, any thread: when somebody last did some of it */

void tick_begin(uint64_t now_ms)
{
    enum purge_tick tick = purge_tick(now_ms);
    if (tick == PURGE_TICK_IDLE) {
        heap_tick_pool();
        idle_tick();
        depot_tick();
    }
    if (tick != PURGE_TICK_NONE) {
        bin_tick(tick);
        ATOMIC_STORE_RELEASE(&steps_left, true);
    }
}

/* A piece of the work; true when there may be more. */
static bool step(void)
{
    bool in_heaps = idle_step();
    bool in_depots = depot_step(), in_bins = bin_sweep_step(), in_page_heap = purge_step();
    return in_heaps || in_depots || in_bins || in_page_heap;
}

/* When a call at that time has to end. */
static uint64_t deadline(uint64_t now_ms)
{
    uint64_t last = ATOMIC_LOAD_RELAXED(&worked_ms);
    uint64_t pause = now_ms > last ? now_ms - last : 0;
    return now_ms + size_min(pause / PAUSE_SHARE, PURGE_MAX_MS);
}

void tick_work(uint64_t now_ms)
{
    /* Before the steps, so that work of a tick that begins meanwhile is not forgotten. */
    if (!ATOMIC_LOAD_RELAXED(&steps_left) ||
        !__atomic_exchange_n(&steps_left, false, __ATOMIC_ACQUIRE))
        return;
    uint64_t end_ms = deadline(now_ms), purged;
    unsigned vain = 0;
    bool more;
    do {
        purged = purge_total();
        more = step();
        vain = purge_total() == purged ? vain + 1 : 0;
        now_ms = os_clock_ms();
    } while (more && vain < VAIN_MAX && now_ms < end_ms);
    ATOMIC_STORE_RELAXED(&worked_ms, now_ms);
    if (more) {
        ATOMIC_STORE_RELEASE(&steps_left, true);
        purge_arm();
    }
}
