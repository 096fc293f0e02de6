/* See limit.h. */
#include "reclaim/limit.h"

#include "base/policy.h"
#include "base/tuning.h"
#include "os/limits.h"
#include "os/os.h"
#include "reclaim/engine.h"
#include "slab/slab.h"
#include "slab/sweep.h"
#include "slab/transfer.h"
#include "span/big_cache.h"
#include "span/page_heap.h"
#include "thread/heap.h"
#include "thread/idle.h"
#include "thread/registry.h"

/* All atomic relaxed, any thread. */
static size_t group_bytes = SIZE_MAX;   /* limit of the system */
static size_t address_bytes = SIZE_MAX; /* limit of the system */
static size_t other_bytes;              /* resident besides the counts of the layers */
static size_t other_addresses;          /* mapped besides the counts */
static size_t taken_bytes; /* since the last look that found room, or asked all heaps */
static size_t room_bytes;  /* that may be taken before the next look */
static size_t mapped_left; /* mapped bytes after addresses were last given back */
static uint64_t purges;
static uint64_t measured_ms;

const char *limit_root = "";

void limit_count(size_t *used, size_t *free, size_t *mapped)
{
    struct page_heap_stats stats = page_heap_stats();
    size_t live = big_live_bytes();
    *used = stats.used_pages * PAGE_SIZE - slab_clean_bytes() + live;
    *free = stats.dirty_free_pages * PAGE_SIZE + big_cache_bytes();
    *mapped = stats.superslabs * REGION_SIZE + live + big_cache_mapped();
}

/* By how much more there is than `bound`; 0: there is not. */
static size_t beyond(size_t bytes, size_t bound)
{
    return bytes - size_min(bytes, bound);
}

static size_t resident_limit(void)
{
    size_t group = ATOMIC_LOAD_RELAXED(&group_bytes), option = (size_t)POLICY(limit_mib) * MIB;
    return option ? size_min(group, option) : group;
}

size_t limit_bytes(void)
{
    size_t limit = resident_limit();
    return limit == SIZE_MAX ? 0 : limit;
}

uint64_t limit_purges(void)
{
    return ATOMIC_LOAD_RELAXED(&purges);
}

/* How much may be held below the limit. */
static size_t bound_of(size_t limit)
{
    return limit == SIZE_MAX ? SIZE_MAX : limit - limit / NEAR_PART;
}

/* ---- Looking --------------------------------------------------------------------------------- */

static void look_at_sum(void)
{
    size_t used, free, mapped;
    limit_count(&used, &free, &mapped);
    size_t limit = resident_limit(), addresses = ATOMIC_LOAD_RELAXED(&address_bytes);
    size_t taken = __atomic_exchange_n(&taken_bytes, 0, __ATOMIC_RELAXED);
    size_t sum = used + free + ATOMIC_LOAD_RELAXED(&other_bytes), most = bound_of(limit);
    /* Much of what was handed out may never be touched: caching ends only if it may have been. */
    size_t resident = sum > limit / 2 ? size_min(sum, os_resident_peak() + taken) : sum;
    size_t all_mapped = mapped + ATOMIC_LOAD_RELAXED(&other_addresses);
    size_t most_mapped = bound_of(addresses), left_mapped = beyond(most_mapped, all_mapped);
    bool near =
        beyond(most, resident) < (limit - most) * 2 || left_mapped < (addresses - most_mapped) * 2;
    ATOMIC_STORE_RELAXED(&pressure_near_flag, near);
    /* A little may be taken beyond the bound, so that the next look does not follow at once. */
    size_t slack = size_max(size_min(limit, addresses) / 64, UNIT_SIZE);
    ATOMIC_STORE_RELAXED(&room_bytes, size_max(size_min(beyond(most, sum), left_mapped), slack));
    size_t excess = beyond(sum, most), gone = engine_give(GIVER_PAGES, size_min(excess, free));
    /* To ask all heaps takes as long as they are large, mostly in vain where a cache fills the
     * limit: so once for so much that was taken. */
    if (excess && taken <= slack)
        ATOMIC_ADD_RELAXED(&taken_bytes, taken);
    if (near && excess > free && taken > slack) {
        if (heap_of_thread())
            heap_flush_singles(heap_of_thread());
        gone += engine_give(GIVER_HEAPS, beyond(excess, gone) + slack);
    }
    /* Addresses go only if all blocks in them are free, and not again before more are taken. */
    if (all_mapped > most_mapped && mapped > ATOMIC_LOAD_RELAXED(&mapped_left)) {
        gone += reclaim_everything();
        limit_count(&used, &free, &mapped);
        ATOMIC_STORE_RELAXED(&mapped_left, mapped);
    }
    if (gone)
        ATOMIC_ADD_RELAXED(&purges, 1);
}

void limit_taken(size_t bytes)
{
    if (ATOMIC_ADD_RELAXED(&taken_bytes, bytes) + bytes > ATOMIC_LOAD_RELAXED(&room_bytes))
        look_at_sum();
}

/* ---- Measuring ------------------------------------------------------------------------------- */

static void measure(void)
{
    struct os_footprint footprint = os_footprint_read("");
    size_t used, free, mapped;
    limit_count(&used, &free, &mapped);
    size_t counted = used + free;
    ATOMIC_STORE_RELAXED(&other_bytes, beyond(footprint.resident_bytes, counted));
    ATOMIC_STORE_RELAXED(&other_addresses, beyond(footprint.address_bytes, mapped));
}

void limit_changed(void)
{
    if (POLICY(limit_mib))
        measure();
    ATOMIC_STORE_RELAXED(&room_bytes, 0);
    ATOMIC_STORE_RELAXED(&mapped_left, 0);
    /* All heaps are asked. */
    ATOMIC_STORE_RELAXED(&taken_bytes, SIZE_MAX / 2);
}

size_t reclaim_read_limits(void)
{
    struct os_limits limits;
    os_limits_read(limit_root, &limits);
    bool limited = size_min(limits.group_bytes, limits.address_bytes) != SIZE_MAX;
    /* Mostly there is no limit, and was none before: then nothing is written. */
    if (limited || ATOMIC_LOAD_RELAXED(&pressure_limited_flag)) {
        ATOMIC_STORE_RELAXED(&group_bytes, limits.group_bytes);
        ATOMIC_STORE_RELAXED(&address_bytes, limits.address_bytes);
        ATOMIC_STORE_RELAXED(&pressure_limited_flag, limited);
    }
    if (pressure_is_limited())
        measure();
    return limits.cpus;
}

void limit_tick(uint64_t now_ms)
{
    if (!pressure_is_limited())
        return;
    uint64_t passed = os_time_between(now_ms, ATOMIC_LOAD_RELAXED(&measured_ms));
    if (POLICY(limit_mib) && passed >= MEASURE_MS) {
        ATOMIC_STORE_RELAXED(&measured_ms, now_ms);
        reclaim_read_limits();
    }
    look_at_sum();
}
