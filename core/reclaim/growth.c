/* See growth.h. */
#include "reclaim/growth.h"

#include "base/tuning.h"
#include "os/os.h"
#include "reclaim/limit.h"
#include "slab/sweep.h"
#include "slab/transfer.h"
#include "span/big_cache.h"
#include "span/page_heap.h"
#include "thread/heap.h"
#include "trace/trace.h"

bool growth_has_come;

/* All atomic relaxed, any thread. */
static size_t grown_bytes;  /* since the last purge for growth */
static size_t owed_bytes;   /* taken since the last look at `height` */
static size_t height;       /* the most bytes that were resident in this round of the engine */
static uint64_t paid_until; /* the bytes that may have gone for others: see payable */

/* How many bytes may go for others now: PAID_A_MS with each millisecond, and PAID_MOST at once,
 * which is why `paid_until` runs after the clock. */
static size_t payable(void)
{
    return size_min(os_clock_ms() * PAID_A_MS - ATOMIC_LOAD_RELAXED(&paid_until), PAID_MOST);
}

static void charge(size_t bytes)
{
    size_t left = payable();
    uint64_t time = os_clock_ms() * PAID_A_MS;
    ATOMIC_STORE_RELAXED(&paid_until, time - left + size_min(bytes, left));
}

bool reclaim_make_room(struct heap *heap, unsigned step)
{
    bool made = step == 0 && heap && heap_flush_singles(heap);
    made |= step == 1 && transfer_drain(TRANSFER_DRAIN_MAX);
    made |= sweep_empties();
    if (made)
        charge(UNIT_SIZE);
    return made;
}

/* Returns cached blocks to the page heap; returns the bytes that lie free and dirty there then. */
static SLOW_PATH size_t empty_caches(void)
{
    struct heap *heap = heap_of_thread();
    for (unsigned step = 0; heap && step < ROOM_STEPS; step++)
        reclaim_make_room(heap, step);
    return page_heap_stats().dirty_free_pages * PAGE_SIZE;
}

void reclaim_before_growth(size_t bytes, bool big)
{
    struct page_heap_stats stats = page_heap_stats();
    size_t dirty = stats.dirty_free_pages * PAGE_SIZE, used = stats.used_pages * PAGE_SIZE;
    ATOMIC_STORE_RELAXED(&pressure_used_bytes, used);
    if (pressure_is_armed())
        ATOMIC_STORE_RELAXED(&growth_has_come, true);
    size_t grown = ATOMIC_ADD_RELAXED(&grown_bytes, bytes) + bytes;
    /* From then on, memory that still lies free counts as not needed: a small part of it, so that
     * resident memory grows little. */
    size_t cached = big_cache_bytes(),
           grown_min = size_max(REGION_SIZE, (dirty + cached) / GROWN_PART);
    if (grown < grown_min || os_is_watched())
        return;
    ATOMIC_STORE_RELAXED(&grown_bytes, 0);
    trace_give_back();
    dirty = empty_caches();
    /* If much is mapped at once, free memory goes for it even if it may be wanted again soon, but
     * not if very little is free. Else what was cached until now stays for the growth itself. */
    size_t at_once =
        dirty + cached >= grown / AT_ONCE_PART ? bytes - size_min(bytes, grown_min) : 0;
    /* Asking takes the locks of all parts, which few free pages do not repay. */
    size_t idle = dirty > pressure_bound(0) ? page_heap_unused_pages(IDLE_SINCE_GROWTH) : 0;
    size_t idle_cached = big_cache_unused(IDLE_SINCE_GROWTH);
    idle = size_max(idle * PAGE_SIZE, size_min(at_once, dirty));
    idle_cached = size_max(idle_cached, size_min(at_once - size_min(at_once, idle), cached));
    if (big)
        idle_cached = 0;
    size_t keep = size_min(pressure_bound(used / STAYING_PART), idle + idle_cached);
    size_t wanted = size_min(grown, idle + idle_cached - keep);
    size_t gone = big_cache_evict(size_min(wanted, idle_cached));
    if (wanted > gone)
        gone += page_heap_purge(size_min(wanted - gone, idle));
    pressure_account(gone);
}

static size_t resident(void)
{
    size_t used, free, mapped;
    limit_count(&used, &free, &mapped);
    return used + free;
}

void growth_begin_round(void)
{
    ATOMIC_STORE_RELAXED(&height, resident());
}

/* Gives back up to `most` bytes; returns how many. If too few pages lie free, caches are emptied
 * first, and then big ones go. */
static size_t give_for_taken(size_t most)
{
    most = size_min(most, payable());
    if (!most)
        return 0;
    struct page_heap_stats stats = page_heap_stats();
    size_t dirty = stats.dirty_free_pages * PAGE_SIZE, used = stats.used_pages * PAGE_SIZE;
    size_t keep = pressure_keep(used / STAYING_PART);
    if (dirty < keep + most)
        dirty = empty_caches();
    size_t unused = dirty + big_cache_bytes();
    most = size_min(most, unused - size_min(keep, unused));
    size_t pages = size_min(most, dirty - size_min(keep, dirty));
    size_t gone = pages ? page_heap_purge(pages) : 0;
    if (gone < most)
        gone += big_cache_evict(most - gone);
    pressure_account(gone);
    charge(gone);
    return gone;
}

/* Free pages go for those that are taken, so that a program which uses memory in turns holds it
 * once, but only where more would be resident than was since the last round: below that height,
 * what goes is soon wanted again. What could not be paid raises the height. */
static void pay(size_t bytes)
{
    size_t owed = ATOMIC_ADD_RELAXED(&owed_bytes, bytes) + bytes;
    if (owed < UNIT_SIZE)
        return;
    ATOMIC_STORE_RELAXED(&owed_bytes, 0);
    size_t now = resident(), high = ATOMIC_LOAD_RELAXED(&height);
    if (now <= high)
        return;
    size_t gone = give_for_taken(size_min(owed, now - high));
    ATOMIC_STORE_RELAXED(&height, size_max(high, now - size_min(gone, now)));
}

void reclaim_for_taken(size_t bytes, bool big)
{
    if (UNLIKELY(pressure_is_limited()))
        limit_taken(bytes);
    if (!big && !os_is_watched())
        pay(bytes);
}

size_t reclaim_clean_most(void)
{
    if (payable() < UNIT_SIZE)
        return SIZE_MAX;
    size_t high = ATOMIC_LOAD_RELAXED(&height);
    return high - size_min(resident(), high);
}
