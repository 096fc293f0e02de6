/* The walkers of the core. In a file of its own: the core and the stress both have a `struct run`.
 */
#include "core_check.h"

#include "fuzz.h"
#include "hakmem/hakmem.h"
#include "observe/walk.h"
#include "span/page_heap.h"
#include "system.h"
#include "thread/heap.h"

void core_check(uint64_t *live_blocks, uint64_t *live_bytes)
{
    struct hakmem_stats stats;

    walk_all();
    hakmem_get_stats(&stats, sizeof stats);
    *live_blocks = stats.live_blocks;
    *live_bytes = stats.live_bytes;
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
