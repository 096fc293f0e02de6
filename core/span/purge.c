/* See purge.h. */
#include "span/purge.h"

#include "base/atomic.h"
#include "base/policy.h"
#include "os/os.h"
#include "span/big.h"
#include "span/page_heap.h"

/* Below this it is not worth a system call: free dirty memory that is always kept. */
static const size_t retain_min = 512 * KIB;

/* One slow path purges no more than this of what a tick left to do. */
static const size_t step_bytes = 4 * MIB;

bool purge_is_armed;

static uint64_t purged_total; /* atomic relaxed, any thread */
static uint64_t last_tick_ms; /* atomic relaxed, any thread */
static size_t step_left;      /* atomic relaxed, any thread: bytes */
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

size_t purge_keep(size_t used_bytes)
{
    return size_max(used_bytes / 100 * (size_t)POLICY(retain_percent), retain_min);
}

size_t purge_share(size_t unused_bytes, size_t used_bytes)
{
    if (unused_bytes <= retain_min)
        return 0;
    size_t share = unused_bytes - retain_min;
    return unused_bytes > purge_keep(used_bytes) ? share : share / 2;
}

void purge_before_growth(size_t bytes)
{
    struct page_heap_stats stats = page_heap_stats();
    size_t dirty = stats.dirty_free_pages * PAGE_SIZE;
    size_t keep = size_max(retain_min, stats.used_pages * PAGE_SIZE / 16);
    if (dirty > keep) {
        size_t purged = page_heap_purge(size_min(bytes, dirty - keep));
        purge_account(purged);
        bytes -= size_min(bytes, purged);
    }
    if (bytes)
        purge_account(big_cache_evict(bytes));
    if (purge_armed())
        ATOMIC_STORE_RELAXED(&grown, true);
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
    size_t unused = page_heap_unused_pages() * PAGE_SIZE;
    struct page_heap_stats stats = page_heap_stats();
    size_t dirty = stats.dirty_free_pages * PAGE_SIZE, used = stats.used_pages * PAGE_SIZE;
    ATOMIC_STORE_RELAXED(&step_left, purge_share(unused, used));
    purge_account(big_cache_expire());
    if (dirty > purge_keep(used) || big_stats().cached_bytes > retain_min)
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

uint64_t purge_total(void)
{
    return ATOMIC_LOAD_RELAXED(&purged_total);
}
