/* See engine.h. */
#include "reclaim/engine.h"

#include "base/policy.h"
#include "base/tuning.h"
#include "hardened.h"
#include "os/os.h"
#include "reclaim/background.h"
#include "reclaim/growth.h"
#include "reclaim/limit.h"
#include "slab/shard.h"
#include "slab/sweep.h"
#include "slab/transfer.h"
#include "span/big_cache.h"
#include "span/page_heap.h"
#include "thread/heap.h"
#include "thread/idle.h"
#include "thread/registry.h"
#include "trace/trace.h"

/* ---- Pages and big blocks -------------------------------------------------------------------- */

static size_t left_in_pages, left_in_big; /* what the round has to give there */

/* Bytes to give back of those unused since the hand came by: all of them if they are an excess,
 * else half. */
static size_t share(size_t unused_bytes, size_t used_bytes)
{
    size_t beyond = unused_bytes - size_min(unused_bytes, pressure_bound(0));
    return unused_bytes > pressure_keep(used_bytes) ? beyond : beyond / 2;
}

/* Looks at page heap and BigCache, which have one budget: the BigCache gives first, since that
 * costs the least. */
static void look_at_pages(unsigned at)
{
    (void)at;
    size_t unused = page_heap_unused_pages(IDLE_SINCE_TICK) * PAGE_SIZE;
    size_t unused_cached = big_cache_unused(IDLE_SINCE_TICK);
    struct page_heap_stats stats = page_heap_stats();
    size_t dirty = stats.dirty_free_pages * PAGE_SIZE;
    size_t used = stats.used_pages * PAGE_SIZE;
    ATOMIC_STORE_RELAXED(&pressure_used_bytes, used);
    used += big_live_bytes();
    size_t wanted = share(unused + unused_cached, used), cached = size_min(wanted, unused_cached);
    left_in_big = cached;
    left_in_pages = size_min(wanted - cached, unused);
    if (dirty > pressure_keep(used) || big_cache_bytes() > pressure_bound(0))
        pressure_arm_still();
}

/* A step of what is left to give; a vain one ends it. */
static bool step_of(size_t *left_bytes, size_t bytes, size_t (*give)(size_t bytes))
{
    if (!*left_bytes)
        return false;
    size_t gone = give(size_min(*left_bytes, bytes));
    pressure_account(gone);
    *left_bytes = gone ? *left_bytes - size_min(*left_bytes, gone) : 0;
    return *left_bytes != 0;
}

static bool step_in_pages(unsigned at, size_t bytes)
{
    (void)at;
    return step_of(&left_in_big, bytes, big_cache_evict) ||
           step_of(&left_in_pages, bytes, page_heap_purge);
}

static size_t give_pages(size_t bytes)
{
    size_t gone = big_cache_evict(bytes);
    return gone < bytes ? gone + page_heap_purge(bytes == SIZE_MAX ? bytes : bytes - gone) : gone;
}

/* ---- The other rows -------------------------------------------------------------------------- */

static void look_at_heaps(unsigned at)
{
    (void)at;
    idle_look();
}

static bool step_in_heaps(unsigned at, size_t bytes)
{
    (void)at, (void)bytes;
    return idle_step();
}

static size_t give_heaps(size_t bytes)
{
    (void)bytes;
    idle_purge();
    return 0;
}

static void look_at_pool(unsigned at)
{
    (void)at;
    trace_give_back();
    registry_look_at_pool();
}

static bool step_in_pool(unsigned at, size_t bytes)
{
    (void)at, (void)bytes;
    return registry_step_in_pool();
}

static size_t give_pool(size_t bytes)
{
    (void)bytes;
    trace_give_back();
    registry_flush_pool();
    return 0;
}

static bool step_in_transfer(unsigned at, size_t bytes)
{
    (void)bytes;
    return transfer_step(at);
}

static size_t give_transfers(size_t bytes)
{
    (void)bytes;
    transfer_drain(SIZE_MAX);
    return 0;
}

/* The round is one of bins, since memory grew. For the thread that the engine works in, as the rest
 * of the hand. */
static bool grown;

static void look_at_bin(unsigned at)
{
    sweep_look(at, grown);
}

/* ---- The table ------------------------------------------------------------------------------- */

/* A kind of place that has memory to give. */
static const struct {
    bool (*may)(unsigned at);                /* has any; NULL: there is one place, which has */
    void (*look)(unsigned at);               /* decides what goes */
    bool (*step)(unsigned at, size_t bytes); /* a little of it goes; false: no more is left */
    size_t (*give)(size_t bytes);            /* bytes that went to the system */
} givers[GIVERS] = {
    [GIVER_HEAPS] = {NULL, look_at_heaps, step_in_heaps, give_heaps},
    [GIVER_POOL] = {NULL, look_at_pool, step_in_pool, give_pool},
    [GIVER_TRANSFERS] = {transfer_may, transfer_look, step_in_transfer, give_transfers},
    [GIVER_BINS] = {sweep_may, look_at_bin, sweep_step, sweep_purge},
    [GIVER_PAGES] = {NULL, look_at_pages, step_in_pages, give_pages},
};

/* How many places there are: one a class and shard, or one. */
static unsigned places(enum giver giver)
{
    return givers[giver].may ? shard_places() : 1;
}

size_t engine_give(enum giver first, size_t bytes)
{
    size_t gone = 0;
    for (enum giver giver = first; giver < GIVERS && gone < bytes; giver++)
        gone += givers[giver].give(bytes == SIZE_MAX ? bytes : bytes - gone);
    pressure_account(gone);
    return gone;
}

size_t reclaim_everything(void)
{
    size_t gone = engine_give(GIVER_HEAPS, SIZE_MAX);
    hardened_unmap_refused();
    os_discard_leftovers();
    return gone;
}

/* ---- The hand -------------------------------------------------------------------------------- */

/* Where the hand is: the row, GIVERS while it rests, the place in the row, and how often it has
 * looked or taken a step there, 0 while it moves. For the thread that the engine works in, and in a
 * child of fork for another one, which goes on wherever that was. */
static enum giver row = GIVERS;
static unsigned place, steps;

static uint64_t round_ms; /* atomic relaxed, any thread: when the last round began */

static uint64_t delay_ms(void)
{
    return size_max((size_t)POLICY(purge_delay_ms), 1);
}

static bool is_time(uint64_t now_ms)
{
    return os_time_between(now_ms, ATOMIC_LOAD_RELAXED(&round_ms)) >= delay_ms();
}

static void go_to(enum giver to)
{
    place = 0;
    KEEP_STORE_ORDER();
    row = to;
}

enum round engine_begin(uint64_t now_ms)
{
    if (row < GIVERS)
        return ROUND_NONE;
    if (is_time(now_ms)) {
        ATOMIC_STORE_RELAXED(&round_ms, now_ms);
        /* Before the looks at free memory: later frees arm anew. */
        pressure_begin_round();
        background_try_again();
        limit_tick(now_ms);
        growth_begin_round();
        grown = false;
        go_to(GIVER_HEAPS);
        return ROUND_IDLE;
    }
    if (!ATOMIC_LOAD_RELAXED(&growth_has_come))
        return ROUND_NONE;
    ATOMIC_STORE_RELAXED(&growth_has_come, false);
    grown = true;
    go_to(GIVER_BINS);
    return ROUND_GROWTH;
}

/* Goes to the next place that may have something, and looks at it. False: there is none in the
 * LOOKS_MAX next ones. */
static bool look(void)
{
    for (unsigned looks = 0; looks < LOOKS_MAX; looks++) {
        enum giver here = row;
        if (here >= GIVERS)
            return false;
        if (place >= places(here)) {
            go_to(grown ? GIVERS : here + 1);
        } else if (givers[here].may && !givers[here].may(place)) {
            place++;
        } else {
            givers[here].look(place);
            return true;
        }
    }
    return false;
}

bool engine_step(size_t bytes)
{
    enum giver here = row;
    if (steps && here < GIVERS && givers[here].step(place, bytes) && ++steps < STEPS_MAX)
        return true;
    if (steps) {
        steps = 0;
        KEEP_STORE_ORDER();
        place++;
    }
    steps = look();
    return row < GIVERS;
}

/* ---- Slow paths ------------------------------------------------------------------------------ */

static uint64_t looked_ms; /* atomic relaxed, any thread: time of the last slow path */
static uint64_t rest_ns;   /* the same: until when nobody works */

/* How long the call may work, if the last slow path came so long ago. */
static uint64_t budget_ns(uint64_t pause_ms)
{
    uint64_t most_ns = pause_ms < LONG_PAUSE_MS ? WORK_SHORT_NS : WORK_LONG_NS;
    return size_max(size_min(most_ns, pause_ms * 1000000 / PAUSE_PART), WORK_MIN_NS);
}

/* With the engine taken. */
static uint64_t work(uint64_t now_ms, uint64_t begin_ns, uint64_t budget)
{
    uint64_t now_ns = begin_ns;
    engine_begin(now_ms);
    while (row < GIVERS && now_ns - begin_ns + STEP_NS <= budget) {
        engine_step(size_max((budget - (now_ns - begin_ns)) / STEP_NS / STEP_PART, 1) * PURGE_STEP);
        now_ns = os_clock_ns();
    }
    uint64_t rest = (now_ns - begin_ns) * WORK_PART;
    ATOMIC_STORE_RELAXED(&rest_ns, now_ns + rest);
    return rest;
}

uint64_t engine_work(uint64_t now_ms, uint64_t budget)
{
    uint8_t state = ATOMIC_LOAD_RELAXED(&pressure_engine);
    if (state == ENGINE_WORKS ||
        !__atomic_compare_exchange_n(
            &pressure_engine, &state, ENGINE_WORKS, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return 0;
    uint64_t rest = work(now_ms, os_clock_ns(), budget);
    ATOMIC_STORE_RELEASE(&pressure_engine, row < GIVERS ? ENGINE_WAITS : ENGINE_RESTS);
    return rest;
}

uint64_t engine_wait_ms(uint64_t now_ms)
{
    if (ATOMIC_LOAD_RELAXED(&pressure_engine) != ENGINE_RESTS ||
        ATOMIC_LOAD_RELAXED(&growth_has_come))
        return 0;
    uint64_t passed = os_time_between(now_ms, ATOMIC_LOAD_RELAXED(&round_ms));
    return delay_ms() - size_min(delay_ms(), passed);
}

void reclaim_tick(uint64_t now_ms)
{
    uint64_t pause_ms = os_time_between(now_ms, ATOMIC_LOAD_RELAXED(&looked_ms));
    if (pause_ms)
        ATOMIC_STORE_RELAXED(&looked_ms, now_ms);
    if (UNLIKELY(POLICY(background)) && background_works())
        return;
    if (engine_wait_ms(now_ms))
        return;
    /* Not for ever where the clock was set back. */
    uint64_t rest = ATOMIC_LOAD_RELAXED(&rest_ns) - os_clock_ns();
    if (rest - 1 >= 2 * WORK_LONG_NS * WORK_PART)
        engine_work(now_ms, budget_ns(pause_ms));
    /* The look may have found something, and no other call may come. */
    if (UNLIKELY(POLICY(background)))
        background_works();
}

/* ---- For a thread that found no memory ------------------------------------------------------- */

bool reclaim_has_room(size_t bytes)
{
    bytes = round_up(bytes, os_page_size());
    void *probe = os_map(bytes, os_page_size(), NULL);
    if (probe)
        os_discard(probe, bytes);
    return probe != NULL;
}

bool reclaim_may_make_room(size_t bytes)
{
    size_t mapped = page_heap_stats().superslabs * REGION_SIZE + big_cache_mapped();
    return bytes <= mapped || reclaim_has_room(bytes - mapped);
}

struct heap *reclaim_enter(void)
{
    struct heap *heap = heap_enter();
    if (LIKELY(heap != NULL))
        return heap;
    engine_give(GIVER_PAGES, SIZE_MAX);
    return heap_enter();
}

bool reclaim_for(struct heap *heap, size_t bytes, unsigned effort)
{
    if (effort > 1 || !reclaim_may_make_room(bytes))
        return false;
    hardened_release();
    heap_flush(heap, SIZE_MAX);
    if (effort > 0)
        reclaim_everything();
    else
        for (enum giver giver = GIVER_HEAPS; giver < GIVER_BINS; giver++)
            givers[giver].give(SIZE_MAX);
    return true;
}
