/* See stats.h. */
#include "observe/stats.h"

#include <pthread.h>
#include <string.h>

#include "api/fallback.h"
#include "map/metadata.h"
#include "os/os.h"
#include "slab/bin.h"
#include "slab/depot.h"
#include "span/big.h"
#include "span/page_heap.h"
#include "span/purge.h"
#include "span/span.h"
#include "thread/heap.h"

const char stats_tier_names[TIER_COUNT][6] = {"tiny", "mid", "large", "big"};

static void add_heaps(unsigned class, struct hakmem_usage *usage)
{
    struct heap_counts heaps = heap_counts(class);
    int64_t pushes = (int64_t)(heaps.cached + heaps.pops + heaps.magazines.returned);
    if (pushes < 0)
        pushes = 0; /* threads are at work: a moment ago it was so */
    usage->cached_blocks += heaps.cached;
    usage->malloc_calls += heaps.pops;
    usage->malloc_hits += heaps.pops - heaps.magazines.misses;
    usage->free_calls += (uint64_t)pushes;
    usage->free_hits += (uint64_t)pushes - heaps.magazines.overflows;
    usage->refills += heaps.magazines.refills;
    usage->flushes += heaps.magazines.flushes;
}

static void add_class(unsigned class, struct hakmem_usage *usage)
{
    add_heaps(class, usage);
    for (unsigned shard = 0; shard < shard_count(); shard++) {
        struct bin *bin = bin_of(shard, class);
        usage->slabs += ATOMIC_LOAD_RELAXED(&bin->slab_count);
        usage->remote_frees += ATOMIC_LOAD_RELAXED(&bin->remote_blocks);
        usage->free_calls += ATOMIC_LOAD_RELAXED(&bin->direct_blocks);
    }
    usage->cached_blocks += depot_blocks(class);
}

void stats_collect_class(unsigned class, struct hakmem_usage *usage)
{
    size_t size = size_classes[class].size;
    memset(usage, 0, sizeof *usage);
    add_class(class, usage);
    if (class <= TWINS)
        add_class(class + SIZE_COUNT, usage);
    usage->live_blocks = usage->malloc_calls - usage->free_calls;
    usage->live_bytes = usage->live_blocks * size;
    usage->cached_bytes = usage->cached_blocks * size;
    usage->committed_bytes = usage->slabs * size_classes[class].units * UNIT_SIZE;
}

/* All fields of hakmem_usage are counters of one type. */
static void add_usage(struct hakmem_usage *sum, const struct hakmem_usage *usage)
{
    uint64_t *to = (uint64_t *)sum;
    const uint64_t *from = (const uint64_t *)usage;
    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
        to[i] += from[i];
}

static void collect_spans(struct hakmem_usage *usage)
{
    struct span_stats spans = span_stats();
    usage->malloc_calls = spans.allocated;
    usage->free_calls = spans.freed;
    usage->live_blocks = usage->slabs = spans.allocated - spans.freed;
    usage->live_bytes = usage->committed_bytes = spans.live_bytes;
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
    total->mmap_calls = ATOMIC_LOAD_RELAXED(&os_counts[OS_MMAP]);
    total->munmap_calls = ATOMIC_LOAD_RELAXED(&os_counts[OS_MUNMAP]);
    total->mremap_calls = ATOMIC_LOAD_RELAXED(&os_counts[OS_MREMAP]);
    total->madvise_calls = ATOMIC_LOAD_RELAXED(&os_counts[OS_MADVISE]);
    total->mprotect_calls = ATOMIC_LOAD_RELAXED(&os_counts[OS_MPROTECT]);
    total->futex_calls = ATOMIC_LOAD_RELAXED(&os_counts[OS_FUTEX]);
}

static void collect_heaps(struct hakmem_stats *total)
{
    uint64_t heaps = 0;
    for (const struct heap *heap = heap_first(); heap; heap = heap->next) {
        heaps++;
        total->threads += heap_in_use(heap);
        total->reallocs_in_place += ATOMIC_LOAD_RELAXED(&heap->reallocs_in_place);
    }
    total->metadata_bytes = metadata_bytes() + page_map_bytes() + heaps * HEAP_BYTES;
}

static void add_tiers(struct hakmem_stats *total, const struct hakmem_usage *tiers)
{
    for (unsigned tier = 0; tier < TIER_COUNT; tier++) {
        const struct hakmem_usage *usage = &tiers[tier];
        total->live_blocks += usage->live_blocks;
        total->live_bytes += usage->live_bytes;
        total->cached_blocks += usage->cached_blocks;
        total->cached_bytes += usage->cached_bytes;
        total->malloc_calls += usage->malloc_calls;
        total->malloc_hits += usage->malloc_hits;
        total->free_calls += usage->free_calls;
        total->free_hits += usage->free_hits;
    }
}

void stats_collect(struct snapshot *snapshot)
{
    struct hakmem_stats *total = &snapshot->total;
    int cancel_type;
    /* An asynchronous cancellation must not find a lock held. */
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &cancel_type);
    struct page_heap_stats pages = page_heap_stats();
    struct big_stats bigs = big_stats();
    pthread_setcanceltype(cancel_type, NULL);
    memset(snapshot, 0, sizeof *snapshot);
    for (unsigned class = 1; class <= SIZE_COUNT; class ++) {
        struct hakmem_usage usage;
        stats_collect_class(class, &usage);
        add_usage(
            &snapshot->tier[class <= TINY_CLASS_LAST ? HAKMEM_TIER_TINY : HAKMEM_TIER_MID], &usage);
    }
    collect_spans(&snapshot->tier[HAKMEM_TIER_LARGE]);
    collect_big(&snapshot->tier[HAKMEM_TIER_BIG], &bigs);
    add_tiers(total, snapshot->tier);
    collect_heaps(total);
    total->libc_calls = fallback_calls();
    total->mapped_bytes = pages.superslabs * REGION_SIZE + bigs.live_bytes + bigs.cached_bytes;
    total->committed_bytes = pages.used_pages * PAGE_SIZE + bigs.live_bytes;
    total->retained_bytes = pages.dirty_free_pages * PAGE_SIZE + bigs.cached_bytes;
    total->purged_bytes = purge_total();
    collect_syscalls(total);
}
