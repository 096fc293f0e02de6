/* See tick.h. */
#include "reclaim/tick.h"

#include "base/policy.h"
#include "base/tuning.h"
#include "os/os.h"
#include "reclaim/growth.h"
#include "reclaim/limit.h"
#include "slab/shard.h"
#include "slab/sweep.h"
#include "span/big_cache.h"
#include "span/page_heap.h"
#include "thread/heap.h"
#include "thread/idle.h"
#include "thread/registry.h"
#include "trace/trace.h"

static uint64_t looked_ms;    /* atomic relaxed, any thread: time of the last question for a tick */
static uint64_t last_tick_ms; /* atomic relaxed, any thread */
static uint64_t worked_ms;    /* atomic relaxed, any thread: time of the last work */
static size_t left_bytes;     /* atomic relaxed, any thread: for the page heap to purge */

/* The last tick left work, in heaps, transfer caches, bins or page heap; atomic, any thread:
 * release on store pairs with acquire on the exchange that takes it. */
static bool steps_left;

/* ---- A tick begins --------------------------------------------------------------------------- */

/* True for one thread if it is time: a second tick would count memory as unused that the first has
 * just begun to watch. */
static bool take_tick(uint64_t now_ms)
{
    uint64_t delay_ms = size_max((size_t)POLICY(purge_delay_ms), 1);
    uint64_t last = ATOMIC_LOAD_RELAXED(&last_tick_ms);
    return os_time_between(now_ms, last) >= delay_ms &&
           __atomic_compare_exchange_n(
               &last_tick_ms, &last, now_ms, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Bytes to give back of those unused since the last tick: all of them if they are an excess, else
 * half. */
static size_t share(size_t unused_bytes, size_t used_bytes)
{
    size_t beyond = unused_bytes - size_min(unused_bytes, pressure_bound(0));
    return unused_bytes > pressure_keep(used_bytes) ? beyond : beyond / 2;
}

/* Begins a tick in page heap and BigCache. */
static void begin_in_pages(void)
{
    /* Before the look at free memory: later frees arm anew. */
    pressure_disarm();
    size_t unused = page_heap_unused_pages(IDLE_SINCE_TICK) * PAGE_SIZE;
    size_t unused_cached = big_cache_unused(IDLE_SINCE_TICK);
    struct page_heap_stats stats = page_heap_stats();
    size_t dirty = stats.dirty_free_pages * PAGE_SIZE;
    size_t used = stats.used_pages * PAGE_SIZE;
    ATOMIC_STORE_RELAXED(&pressure_used_bytes, used);
    used += big_live_bytes();
    /* One budget: the BigCache gives first, since that costs the least, and the page heap the rest.
     */
    size_t wanted = share(unused + unused_cached, used);
    size_t evicted = wanted ? big_cache_evict(size_min(wanted, unused_cached)) : 0;
    pressure_account(evicted);
    ATOMIC_STORE_RELAXED(&left_bytes, size_min(wanted - size_min(wanted, evicted), unused));
    if (dirty > pressure_keep(used) || big_cache_bytes() > pressure_bound(0))
        pressure_arm();
}

enum pressure_tick tick_begin(uint64_t now_ms)
{
    bool idle = take_tick(now_ms);
    if (idle) {
        begin_in_pages();
        limit_tick(now_ms);
        heap_tick_pool();
        idle_tick();
        transfer_tick();
        trace_give_back();
    } else if (!growth_has_come()) {
        return PRESSURE_TICK_NONE;
    }
    enum pressure_tick tick = idle ? PRESSURE_TICK_IDLE : PRESSURE_TICK_GROWTH;
    sweep_tick(tick);
    ATOMIC_STORE_RELEASE(&steps_left, true);
    return tick;
}

/* ---- Its work -------------------------------------------------------------------------------- */

static bool step_in_pages(void)
{
    size_t left = ATOMIC_LOAD_RELAXED(&left_bytes);
    if (!left)
        return false;
    size_t purged = page_heap_purge(size_min(left, PURGE_STEP));
    pressure_account(purged);
    left = purged ? left - size_min(left, purged) : 0;
    ATOMIC_STORE_RELAXED(&left_bytes, left);
    return left != 0;
}

bool tick_step(void)
{
    bool in_heaps = idle_step(), in_transfers = transfer_step();
    bool in_bins = sweep_step(), in_pages = step_in_pages();
    return in_heaps || in_transfers || in_bins || in_pages;
}

/* The time by which a call that begins at `now_ms` has to end. */
static uint64_t deadline(uint64_t now_ms)
{
    uint64_t pause = os_time_between(now_ms, ATOMIC_LOAD_RELAXED(&worked_ms));
    return now_ms + size_min(pause / PAUSE_SHARE, PURGE_MAX_MS);
}

static void work(uint64_t now_ms)
{
    uint64_t end_ms = deadline(now_ms), purged;
    unsigned vain = 0;
    bool more;
    do {
        purged = pressure_total();
        more = tick_step();
        vain = pressure_total() == purged ? vain + 1 : 0;
        now_ms = os_clock_ms();
    } while (more && vain < VAIN_MAX && now_ms < end_ms);
    ATOMIC_STORE_RELAXED(&worked_ms, now_ms);
    if (more) {
        ATOMIC_STORE_RELEASE(&steps_left, true);
        pressure_arm();
    }
}

void reclaim_tick(uint64_t now_ms)
{
    if (ATOMIC_LOAD_RELAXED(&looked_ms) != now_ms) {
        ATOMIC_STORE_RELAXED(&looked_ms, now_ms);
        tick_begin(now_ms);
    }
    /* Before the steps, so that the work of a tick that begins meanwhile is not forgotten. */
    if (ATOMIC_LOAD_RELAXED(&steps_left) &&
        __atomic_exchange_n(&steps_left, false, __ATOMIC_ACQUIRE))
        work(now_ms);
}
