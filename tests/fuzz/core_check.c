/* The core as a target sees it from inside: its start and end, its walkers, its counts. In a file
 * of its own: the core and the stress both have a `struct run`. */
#include "core_check.h"

#include <string.h>

#include "fuzz.h"
#include "hakmem/hakmem.h"
#include "system.h"

#include "api/alloc.h"
#include "api/environment.h"
#include "api/init.h"
#include "checks/walk.h"
#include "hardened/front.h"
#include "hardened/hold.h"
#include "map/page_map.h"
#include "span/big.h"
#include "span/page_heap.h"
#include "thread/registry.h"
#include "trace/sample.h"
#include "trace/trace.h"

bool core_start(void)
{
    environment_read();
    ATOMIC_STORE_RELEASE(&trace, trace_open());
    init_heap();
    return HARDENED;
}

void core_stop(void)
{
    if (!HARDENED)
        return;
    hardened_stop();
    hardened_release();
}

/* ---- What the records of the hardened library say -------------------------------------------- */

/* Blocks of a class that neither their bins have nor anybody else. */
static unsigned waiting[HOLD_CLASSES], large_waiting;

static void count_block(struct slab *slab, uint32_t word, struct core_counts *counts)
{
    const struct sample *sample = word_sample(slab);
    unsigned size_class = sample ? sample->size_class : slab->size_class;

    counts->blocks++;
    counts->bytes += size_classes[size_class].size;
    counts->asked += word_size(word);
}

static void count_slab(struct slab *slab, struct core_counts *counts)
{
    unsigned without_owner = 0;

    for (unsigned i = 0; i < slab->blocks; i++) {
        uint32_t word = *slab_word(slab, i);

        if (word_state(word) == WORD_LIVE)
            count_block(slab, word, counts);
        else
            without_owner += !bitmap_test(slab->free, i);
    }
    if (slab->size_class < HOLD_CLASSES)
        waiting[slab->size_class] += without_owner;
    else
        large_waiting += without_owner;
}

static void count_region(struct region *region, struct core_counts *counts)
{
    struct superslab *superslab = (struct superslab *)region;
    struct big *big = (struct big *)region;
    struct slab *before = NULL;

    if (region->kind == REGION_BIG) {
        counts->blocks += big->live;
        counts->bytes += big->live ? big->mapped : 0;
        counts->asked += big->live ? big->mapped - word_size(big->word) : 0;
        return;
    }
    for (unsigned unit = 0; unit < SUPERSLAB_UNITS; unit++) {
        struct slab *slab = superslab->slab_of_unit[unit];

        if (slab && slab != before)
            count_slab(slab, counts);
        before = slab ? slab : before;
    }
}

/* Each block that was taken out of a slab is live, or waits in one place. */
static void check_waiting(void)
{
    unsigned held[HOLD_CLASSES] = {0};

    for (const struct heap *heap = heap_first(); heap; heap = heap->next)
        hold_check(heap, held);
    for (unsigned size_class = 1; size_class < HOLD_CLASSES; size_class++)
        if (held[size_class] != waiting[size_class])
            fuzz_failed(
                "class %u: threads hold %u blocks, and %u have no owner", size_class,
                held[size_class], waiting[size_class]);
    FUZZ_CHECK(large_check() == large_waiting);
}

/* All that the library knows of live blocks, counted anew. */
static void check_hardened(struct core_counts *counts)
{
    struct core_counts found = {0, 0, 0};
    unsigned zero_sizes = zero_size_taken();

    memset(waiting, 0, sizeof waiting);
    large_waiting = 0;
    for (struct region *region = NULL; (region = page_map_next(region)) != NULL;)
        count_region(region, &found);
    check_waiting();
    /* For the statistics no bytes are a block of the shortest class. */
    found.blocks += zero_sizes;
    found.bytes += zero_sizes * (uint64_t)size_classes[1].size;
    if (found.blocks != counts->blocks || found.bytes != counts->bytes)
        fuzz_failed(
            "the records know %llu live blocks of %llu bytes, the statistics %llu of %llu",
            (unsigned long long)found.blocks, (unsigned long long)found.bytes,
            (unsigned long long)counts->blocks, (unsigned long long)counts->bytes);
    counts->asked = found.asked;
}

/* ---- Checks ---------------------------------------------------------------------------------- */

void core_check(struct core_counts *counts)
{
    struct hakmem_stats stats;

    walk_all();
    hakmem_get_stats(&stats, sizeof stats);
    *counts = (struct core_counts){.blocks = stats.live_blocks, .bytes = stats.live_bytes};
    if (HARDENED)
        check_hardened(counts);
}

void core_check_object(const void *address, size_t rest, bool known)
{
    size_t exact = alloc_object_size(address), fast = alloc_object_size_fast(address);
    bool unknown = !known && exact == SIZE_MAX;

    if ((exact != rest && !unknown) || fast < rest)
        fuzz_failed("%zu bytes are left from %p on, not %zu or %zu", rest, address, exact, fast);
}

void core_check_empty(void)
{
    struct hakmem_stats stats;
    struct page_heap_stats pages = page_heap_stats();

    hakmem_get_stats(&stats, sizeof stats);
    FUZZ_CHECK(stats.threads == 0);
    FUZZ_CHECK(stats.committed_bytes == 0 && stats.retained_bytes == 0);
    FUZZ_CHECK(pages.used_pages == 0 && pages.dirty_free_pages == 0);
    for (unsigned tier = 0; tier < hakmem_tier_count(); tier++) {
        struct hakmem_usage usage;

        hakmem_get_tier(tier, &usage, sizeof usage);
        FUZZ_CHECK(usage.live_blocks == 0 && usage.live_bytes == 0);
        FUZZ_CHECK(usage.cached_blocks == 0 && usage.slabs == 0);
        FUZZ_CHECK(usage.malloc_calls == usage.free_calls);
    }
}

void *core_mark(void)
{
    return class_map_newest()->classes;
}
