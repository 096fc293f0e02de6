/* See purge.h. */
#include "span/purge.h"

#include "base/atomic.h"
#include "base/policy.h"
#include "os/os.h"
#include "span/big.h"
#include "span/page_heap.h"

/* Below this it is not worth a system call: free dirty memory that is always kept. */
static const size_t retain_min = 512 * KIB;

/* Memory in use not long ago is kept up to this bound at the balanced `retain_percent`: a program
 * whose use swings by so much purges only when it is idle. */
static const size_t retain_recent_max = 2 * MIB;

static uint64_t purged_total;  /* atomic relaxed, any thread */
static size_t recent_peak;     /* atomic relaxed, any thread: of bytes in use, halved when idle */
static uint64_t idle_since_ms; /* atomic relaxed, any thread: last time of an idle purge */

void purge_account(size_t bytes)
{
    if (bytes)
        ATOMIC_ADD_RELAXED(&purged_total, bytes);
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
}

void purge_after_free(size_t dirty_bytes, size_t used_bytes)
{
    size_t percent = (size_t)POLICY(retain_percent), peak = ATOMIC_LOAD_RELAXED(&recent_peak);
    if (used_bytes + dirty_bytes > peak)
        ATOMIC_STORE_RELAXED(&recent_peak, peak = used_bytes + dirty_bytes);
    size_t recent = size_min(peak, retain_recent_max / 25 * percent);
    size_t keep = size_max(used_bytes / 100 * percent, size_max(retain_min, recent));
    if (dirty_bytes > keep)
        purge_account(page_heap_purge(dirty_bytes - keep / 2));
}

void purge_idle(void)
{
    uint64_t now = os_clock_ms(), since = ATOMIC_LOAD_RELAXED(&idle_since_ms);
    uint64_t delay = (uint64_t)POLICY(purge_delay_ms);
    if (now - since < delay)
        return;
    ATOMIC_STORE_RELAXED(&idle_since_ms, now);
    ATOMIC_STORE_RELAXED(&recent_peak, ATOMIC_LOAD_RELAXED(&recent_peak) / 2);
    size_t dirty = page_heap_stats().dirty_free_pages * PAGE_SIZE;
    if (dirty > retain_min)
        purge_account(page_heap_purge((dirty - retain_min) / 2));
    purge_account(big_cache_expire(now - size_min(now, delay)));
}

size_t purge_everything(void)
{
    size_t purged = page_heap_purge(SIZE_MAX) + big_cache_evict(SIZE_MAX);
    purge_account(purged);
    return purged;
}

uint64_t purge_total(void)
{
    return ATOMIC_LOAD_RELAXED(&purged_total);
}
