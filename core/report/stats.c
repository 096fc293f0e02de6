/* See stats.h. */
#include "report/stats.h"

#include <string.h>

#include "api/fallback.h"
#include "base/pressure.h"
#include "hardened.h"
#include "map/metadata.h"
#include "os/cancel.h"
#include "os/os.h"
#include "reclaim/limit.h"
#include "report/cycles_report.h"
#include "slab/bin.h"
#include "slab/shard.h"
#include "slab/transfer.h"
#include "span/big.h"
#include "span/page_heap.h"
#include "thread/registry.h"

const char stats_tier_names[TIER_COUNT][6] = {"tiny", "mid", "large", "big"};
const char stats_syscall_names[] = "mmap\0munmap\0mremap\0madvise\0mprotect\0futex\0";

_Static_assert(
    sizeof(struct hakmem_stats) ==
        (STATS_SUMS + STATS_MEMORY + STATS_SYSCALLS + STATS_LATER) * sizeof(uint64_t),
    "stats.h says what all fields are");
_Static_assert(STATS_SYSCALLS == (int)OS_CALL_COUNT, "all calls are reported");

static void add_heaps(unsigned size_class, struct hakmem_usage *usage)
{
    struct heap_counts heaps = heap_counts(size_class);
    int64_t pushes = (int64_t)(heaps.cached + heaps.pops + heaps.magazines.returned);
    if (pushes < 0)
        pushes = 0; /* as in stats_difference */
    usage->cached_blocks += heaps.cached;
    usage->malloc_calls += heaps.pops;
    usage->malloc_hits += stats_difference(heaps.pops, heaps.magazines.misses);
    usage->free_calls += (uint64_t)pushes;
    usage->free_hits += stats_difference((uint64_t)pushes, heaps.magazines.overflows);
    usage->refills += heaps.magazines.refills;
    usage->flushes += heaps.magazines.flushes;
}

static void add_class(unsigned size_class, struct hakmem_usage *usage)
{
    add_heaps(size_class, usage);
    for (unsigned shard = 0; shard < shard_count(); shard++) {
        struct bin *bin = bin_of(shard, size_class);
        usage->slabs += ATOMIC_LOAD_RELAXED(&bin->slab_count);
        usage->empty_slabs += ATOMIC_LOAD_RELAXED(&bin->kept);
        usage->remote_frees += ATOMIC_LOAD_RELAXED(&bin->remote_blocks);
        usage->free_calls += ATOMIC_LOAD_RELAXED(&bin->direct_blocks);
    }
    uint64_t in_transfer = transfer_blocks(size_class);
    usage->transfer_blocks += in_transfer;
    usage->cached_blocks += in_transfer;
}

static void collected_class(unsigned size_class, struct hakmem_usage *usage)
{
    size_t size = size_classes[size_class].size;
    memset(usage, 0, sizeof *usage);
    add_class(size_class, usage);
    if (size_class <= TWINS)
        add_class(size_class + SIZE_COUNT, usage);
    usage->live_blocks = stats_difference(usage->malloc_calls, usage->free_calls);
    usage->live_bytes = usage->live_blocks * size;
    usage->cached_bytes = usage->cached_blocks * size;
    usage->committed_bytes = usage->slabs * size_classes[size_class].units * UNIT_SIZE;
}

void stats_collected_class(unsigned size_class, struct hakmem_usage *usage)
{
    int type = cancel_put_off();
    collected_class(size_class, usage);
    cancel_restore(type);
}

void stats_collect_class(unsigned size_class, struct hakmem_usage *usage)
{
    int type = cancel_put_off();
    heap_add_counts(size_class, size_class);
    if (size_class <= TWINS)
        heap_add_counts(size_class + SIZE_COUNT, size_class + SIZE_COUNT);
    collected_class(size_class, usage);
    cancel_restore(type);
}

/* Adds the first `count` fields, which are counters of one type. */
static void add_counters(void *sum, const void *counters, size_t count)
{
    uint64_t *to = sum;
    const uint64_t *from = counters;
    for (size_t i = 0; i < count; i++)
        to[i] += from[i];
}

enum hakmem_tier stats_tier_of(unsigned size_class)
{
    if (size_class <= TINY_CLASS_LAST || size_class > SIZE_COUNT)
        return HAKMEM_TIER_TINY;
    return size_class <= MID_CLASS_LAST ? HAKMEM_TIER_MID : HAKMEM_TIER_LARGE;
}

static void collect_big(struct hakmem_usage *usage, const struct big_stats *bigs)
{
    usage->malloc_calls = bigs->allocated;
    usage->free_calls = bigs->freed;
    usage->live_blocks = usage->slabs = bigs->live_blocks;
    usage->live_bytes = usage->committed_bytes = bigs->live_bytes;
}

static void collect_syscalls(struct hakmem_stats *total)
{
    uint64_t *counts = (uint64_t *)total + STATS_SUMS + STATS_MEMORY;
    for (enum os_call call = 0; call < OS_CALL_COUNT; call++)
        counts[call] = ATOMIC_LOAD_RELAXED(&os_counts[call]);
}

static void collect_heaps(struct hakmem_stats *total)
{
    uint64_t heap_bytes = 0;
    for (const struct heap *heap = heap_first(); heap; heap = heap->next) {
        heap_bytes += HEAP_BYTES + hardened_heap_bytes(heap);
        total->threads += heap_in_use(heap);
        total->reallocs_in_place += ATOMIC_LOAD_RELAXED(&heap->reallocs_in_place);
    }
    total->metadata_bytes = metadata_bytes() + page_map_bytes() + heap_bytes;
}

static void add_tiers(struct hakmem_stats *total, const struct hakmem_usage *tiers)
{
    for (unsigned tier = 0; tier < TIER_COUNT; tier++)
        add_counters(total, &tiers[tier], STATS_SUMS);
}

void stats_collect(struct snapshot *snapshot)
{
    struct hakmem_stats *total = &snapshot->total;
    int type = cancel_put_off();
    struct page_heap_stats pages = page_heap_stats();
    struct big_stats bigs = big_stats();
    memset(snapshot, 0, sizeof *snapshot);
    heap_add_counts(1, CLASS_COUNT - 1);
    for (unsigned size_class = 1; size_class <= SIZE_COUNT; size_class++) {
        struct hakmem_usage usage;
        collected_class(size_class, &usage);
        add_counters(&snapshot->tier[stats_tier_of(size_class)], &usage, USAGE_FIELDS);
        total->transfer_bytes += usage.transfer_blocks * size_classes[size_class].size;
        total->empty_bytes +=
            usage.empty_slabs * size_classes[size_class].units * (uint64_t)UNIT_SIZE;
    }
    collect_big(&snapshot->tier[HAKMEM_TIER_BIG], &bigs);
    add_tiers(total, snapshot->tier);
    collect_heaps(total);
    total->libc_calls = fallback_calls();
    total->mapped_bytes = pages.superslabs * REGION_SIZE + bigs.live_bytes + big_cache_mapped();
    total->committed_bytes = pages.used_pages * PAGE_SIZE + bigs.live_bytes;
    total->retained_bytes = pages.dirty_free_pages * PAGE_SIZE + bigs.cached_bytes;
    total->purged_bytes = pressure_total();
    collect_syscalls(total);
    if (HAKMEM_MEASURING)
        cycles_sum(total);
    total->memory_limit_bytes = limit_bytes();
    total->limit_purges = limit_purges();
    cancel_restore(type);
}
