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
static size_t taken_bytes;              /* since the last look */
static size_t room_bytes;               /* that may be taken before the next look */
static size_t mapped_left;              /* mapped bytes after addresses were last given back */
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

/* How much of the bound is left. `*excess`: by how much it is exceeded. */
static size_t room(size_t limit, size_t held, size_t *excess)
{
    size_t most = limit == SIZE_MAX ? SIZE_MAX : limit - limit / NEAR_PART;
    *excess = held - size_min(held, most);
    return most - size_min(held, most);
}

/* True if less than twice the part that is to be left free is left above it. */
static bool is_near(size_t limit, size_t held)
{
    return limit - size_min(held, limit) < limit / NEAR_PART * 3;
}

/* ---- Looking --------------------------------------------------------------------------------- */

static void purge(size_t wanted, size_t free_bytes, size_t ahead)
{
    size_t shallow = size_min(wanted, free_bytes), gone = 0;
    if (shallow)
        gone = engine_give(GIVER_PAGES, shallow);
    if (gone < wanted)
        gone += wanted == SIZE_MAX ? reclaim_everything()
                                   : engine_give(GIVER_HEAPS, wanted - gone + ahead);
    if (gone)
        ATOMIC_ADD_RELAXED(&purges, 1);
}

static void look_at_sum(void)
{
    size_t used, free, mapped;
    limit_count(&used, &free, &mapped);
    size_t limit = resident_limit(), addresses = ATOMIC_LOAD_RELAXED(&address_bytes);
    size_t excess, excess_mapped, taken = __atomic_exchange_n(&taken_bytes, 0, __ATOMIC_RELAXED);
    size_t sum = used + free + ATOMIC_LOAD_RELAXED(&other_bytes);
    size_t left = room(limit, sum, &excess);
    /* Much of what was handed out may never be touched: caching ends only if it may have been. */
    size_t resident = sum > limit / 2 ? size_min(sum, os_resident_peak() + taken) : sum;
    size_t all_mapped = mapped + ATOMIC_LOAD_RELAXED(&other_addresses);
    size_t left_mapped = room(addresses, all_mapped, &excess_mapped);
    bool near = is_near(limit, resident) || is_near(addresses, all_mapped);
    ATOMIC_STORE_RELAXED(&pressure_near_flag, near);
    /* A little may be taken beyond the bound, so that the next look does not follow at once. */
    size_t slack = size_max(size_min(limit, addresses) / 64, UNIT_SIZE);
    ATOMIC_STORE_RELAXED(&room_bytes, size_max(size_min(left, left_mapped), slack));
    if (near && excess > free && heap_of_thread() && heap_flush_singles(heap_of_thread()))
        limit_count(&used, &free, &mapped);
    if (excess)
        purge(near ? excess : size_min(excess, free), free, slack);
    /* Addresses go only if all blocks in them are free, and not again before more are taken. */
    if (excess_mapped && mapped > ATOMIC_LOAD_RELAXED(&mapped_left)) {
        purge(SIZE_MAX, 0, 0);
        limit_count(&used, &free, &mapped);
        ATOMIC_STORE_RELAXED(&mapped_left, mapped);
    }
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
    ATOMIC_STORE_RELAXED(
        &other_bytes, footprint.resident_bytes - size_min(footprint.resident_bytes, counted));
    ATOMIC_STORE_RELAXED(
        &other_addresses, footprint.address_bytes - size_min(footprint.address_bytes, mapped));
}

void limit_changed(void)
{
    if (POLICY(limit_mib))
        measure();
    ATOMIC_STORE_RELAXED(&room_bytes, 0);
    ATOMIC_STORE_RELAXED(&mapped_left, 0);
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
