/* See purge.h. */
#include "span/purge.h"

#include "base/atomic.h"
#include "base/policy.h"
#include "os/os.h"
#include "span/big_cache.h"
#include "span/page_heap.h"

/* Below this it is not worth a system call: free dirty memory that is always kept. */
static const size_t retain_min = 512 * KIB;

/* One slow path purges no more than this of what a tick left to do. */
static const size_t step_bytes = 4 * MIB;

/* See purge_set_kept_bytes; atomic relaxed, any thread. */
#define KEPT_BY_POLICY (SIZE_MAX - 1)
static size_t kept_bytes = KEPT_BY_POLICY;

bool purge_is_armed;

static uint64_t purged_total; /* atomic relaxed, any thread */
static uint64_t last_tick_ms; /* atomic relaxed, any thread */
static size_t step_left;      /* atomic relaxed, any thread: bytes */
static size_t grown_bytes;    /* atomic relaxed, any thread: since the last purge for growth */
static bool grown;            /* atomic relaxed, any thread: since the last tick, while armed */

void purge_account(size_t bytes)
{
    if (bytes)
        ATOMIC_ADD_RELAXED(&purged_total, bytes);
}

void purge_arm(void)
{
    /* Every slow path reads it: only a change is worth a write. */
    if (!purge_armed())
        ATOMIC_STORE_RELAXED(&purge_is_armed, true);
}

void purge_set_kept_bytes(size_t bytes)
{
    ATOMIC_STORE_RELAXED(&kept_bytes, bytes == KEPT_BY_POLICY ? SIZE_MAX : bytes);
    purge_arm();
}

static bool keeps_by_policy(void)
{
    return LIKELY(ATOMIC_LOAD_RELAXED(&kept_bytes) == KEPT_BY_POLICY);
}

size_t purge_kept_bytes(void)
{
    return keeps_by_policy() ? 0 : ATOMIC_LOAD_RELAXED(&kept_bytes);
}

static size_t beyond_kept(size_t bytes)
{
    size_t kept = purge_kept_bytes();
    return bytes > kept ? bytes - kept : 0;
}

size_t purge_keep(size_t used_bytes)
{
    if (!keeps_by_policy())
        return purge_kept_bytes();
    return size_max(used_bytes / 100 * (size_t)POLICY(retain_percent), retain_min);
}

size_t purge_share(size_t unused_bytes, size_t used_bytes)
{
    if (!keeps_by_policy())
        return beyond_kept(unused_bytes);
    if (unused_bytes <= retain_min)
        return 0;
    size_t share = unused_bytes - retain_min;
    return unused_bytes > purge_keep(used_bytes) ? share : share / 2;
}

/* Bytes of growth after which what lies free still is thought not to be needed: a little of what
 * lies free, so that little is added to what is resident. */
static size_t growth_window(size_t free_bytes)
{
    return size_max(REGION_SIZE, free_bytes / 16);
}

void purge_before_growth(size_t bytes)
{
    struct page_heap_stats stats = page_heap_stats();
    size_t dirty = stats.dirty_free_pages * PAGE_SIZE, used = stats.used_pages * PAGE_SIZE;
    if (purge_armed())
        ATOMIC_STORE_RELAXED(&grown, true);
    size_t due = ATOMIC_ADD_RELAXED(&grown_bytes, bytes) + bytes;
    size_t cached = big_cache_bytes(), window = growth_window(dirty + cached);
    if (due < window)
        return;
    ATOMIC_STORE_RELAXED(&grown_bytes, 0);
    /* Much at once is paid for by what may not be idle, unless that is little beside it. */
    size_t at_once = dirty + cached >= due / 4 ? bytes - size_min(bytes, window) : 0;
    size_t keep = keeps_by_policy() ? size_max(retain_min, used / 16) : purge_kept_bytes();
    size_t idle = page_heap_unused_pages(IDLE_SINCE_GROWTH) * PAGE_SIZE;
    size_t idle_cached = big_cache_unused(IDLE_SINCE_GROWTH);
    idle = size_max(idle, size_min(at_once, dirty));
    size_t purged = idle > keep ? page_heap_purge(size_min(due, idle - keep)) : 0;
    idle_cached = size_max(idle_cached, size_min(at_once - size_min(at_once, purged), cached));
    idle_cached = size_min(idle_cached, beyond_kept(cached));
    if (due > purged && idle_cached)
        purged += big_cache_evict(size_min(due - purged, idle_cached));
    purge_account(purged);
}

void purge_after_free(size_t dirty_bytes, size_t used_bytes)
{
    if (dirty_bytes > purge_keep(used_bytes))
        purge_arm();
}

enum purge_tick purge_tick(uint64_t now_ms)
{
    uint64_t delay_ms = size_max((size_t)POLICY(purge_delay_ms), 1);
    uint64_t last = ATOMIC_LOAD_RELAXED(&last_tick_ms);
    /* One thread has the tick: a second one would take what the first has just begun to watch for
     * unused. */
    if (now_ms < last + delay_ms ||
        !__atomic_compare_exchange_n(
            &last_tick_ms, &last, now_ms, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return ATOMIC_LOAD_RELAXED(&grown) && __atomic_exchange_n(&grown, false, __ATOMIC_RELAXED)
                   ? PURGE_TICK_GROWTH
                   : PURGE_TICK_NONE;
    /* Before the look at what is there: what is freed after it arms anew. */
    ATOMIC_STORE_RELAXED(&purge_is_armed, false);
    size_t unused = page_heap_unused_pages(IDLE_SINCE_TICK) * PAGE_SIZE;
    struct page_heap_stats stats = page_heap_stats();
    size_t dirty = stats.dirty_free_pages * PAGE_SIZE, used = stats.used_pages * PAGE_SIZE;
    ATOMIC_STORE_RELAXED(&step_left, purge_share(unused, used));
    size_t unused_cached = big_cache_unused(IDLE_SINCE_TICK);
    purge_account(big_cache_trim(size_min(unused_cached, beyond_kept(big_cache_bytes()))));
    if (dirty > purge_keep(used) || big_cache_bytes() > size_max(retain_min, purge_kept_bytes()))
        purge_arm();
    return PURGE_TICK_IDLE;
}

bool purge_step(void)
{
    size_t left = ATOMIC_LOAD_RELAXED(&step_left);
    if (!left)
        return false;
    size_t purged = page_heap_purge(size_min(left, step_bytes));
    purge_account(purged);
    left = purged ? left - size_min(left, purged) : 0;
    ATOMIC_STORE_RELAXED(&step_left, left);
    return left != 0;
}

size_t purge_everything(void)
{
    size_t purged = page_heap_purge(SIZE_MAX) + big_cache_evict(SIZE_MAX);
    purge_account(purged);
    os_discard_leftovers();
    return purged;
}

bool purge_may_make_room(size_t bytes)
{
    size_t mapped = page_heap_stats().superslabs * REGION_SIZE + big_cache_bytes();
    if (bytes <= mapped)
        return true;
    size_t rest = round_up(bytes - mapped, os_page_size());
    void *probe = os_map(rest, os_page_size(), NULL);
    if (probe)
        os_discard(probe, rest);
    return probe != NULL;
}

uint64_t purge_total(void)
{
    return ATOMIC_LOAD_RELAXED(&purged_total);
}
