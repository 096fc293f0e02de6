/* See checks.h: regions, and the structures that keep them. */
#include <string.h>

#include "base/assert.h"
#include "checks/checks.h"
#include "map/metadata.h"
#include "span/big_part.h"
#include "span/page_heap.h"

/* ---- Maps and records ------------------------------------------------------------------------ */

void metadata_check(void)
{
    lock_acquire(&metadata.lock);
    ASSERT(metadata.cursor <= metadata.end);
    ASSERT((uintptr_t)metadata.cursor % METADATA_GRAIN == 0);
    /* More free bytes than there are mean a cycle, or a record that is free twice. */
    size_t free_bytes = (size_t)(metadata.end - metadata.cursor), mapped = 0;
    for (const struct metadata_chunk *chunk = metadata_chunks; chunk; chunk = chunk->next)
        mapped += chunk->bytes;
    ASSERT(mapped == metadata.bytes);
    (void)mapped; /* only asserted on */
    for (unsigned i = 0; i < METADATA_SIZES; i++) {
        for (struct free_record *record = metadata.free[i]; record; record = record->next) {
            ASSERT((uintptr_t)record % METADATA_GRAIN == 0);
            free_bytes += (size_t)(i + 1) * METADATA_GRAIN;
            ASSERT(free_bytes <= metadata.bytes);
        }
    }
    lock_release(&metadata.lock);
}

void page_map_check(void)
{
    size_t entries = 0, found = 0;
    for (size_t unit = 0; unit < (size_t)1 << (ROOT_BITS + LEAF_BITS);) {
        const struct leaf *leaf = page_map_root[unit >> LEAF_BITS];
        if (!leaf) {
            unit += (size_t)1 << LEAF_BITS;
            continue;
        }
        const struct region *region = page_map_region(leaf->entry[unit & ((1 << LEAF_BITS) - 1)]);
        ASSERT(!region || (uintptr_t)region->base >> REGION_SHIFT == unit);
        ASSERT(!region || region->kind == REGION_BIG || (uintptr_t)region->base % REGION_SIZE == 0);
        entries += region != NULL;
        unit++;
    }
    /* page_map_next searches between the first and the last region that there ever was. */
    for (const struct region *region = NULL; (region = page_map_next(region)) != NULL;)
        found++;
    ASSERT(found == entries);
    (void)entries; /* only asserted on */
}

/* ---- Superslabs ------------------------------------------------------------------------------ */

static unsigned dirty_free_pages(const struct superslab *superslab)
{
    unsigned pages = 0;
    for (unsigned unit = 0; unit < SUPERSLAB_UNITS; unit++)
        if (superslab->free_units >> unit & 1)
            pages += bits_count(superslab->dirty[unit]);
    return pages;
}

void superslab_check(const struct superslab *superslab)
{
    (void)superslab; /* only asserted on */
    ASSERT(superslab->dirty_free_pages == dirty_free_pages(superslab));
}

static size_t list_length(const struct list *list)
{
    size_t length = 0;
    for (const struct list_node *node = list->first; node; node = node->next)
        length++;
    return length;
}

/* Lock held. */
static void check_part(const struct page_heap_part *part)
{
    struct page_heap_stats stats = {0};
    size_t with_dirt = 0;
    for (unsigned run = 0; run <= SUPERSLAB_UNITS; run++) {
        struct list_node *node = part->by_run[run].first;
        ASSERT(bitmap_test(&part->runs, run) == (node != NULL));
        for (; node; node = node->next) {
            struct superslab *superslab = CONTAINER_OF(node, struct superslab, by_run);
            superslab_check(superslab);
            ASSERT(&page_heap_part[superslab->part] == part);
            ASSERT(superslab->listed_run == run && superslab_longest_run(superslab) == run);
            ASSERT(list_contains(&superslab->by_dirt) == (superslab->dirty_free_pages != 0));
            ASSERT(page_map_lookup(superslab->region.base) == &superslab->region);
            stats.superslabs++;
            stats.used_pages +=
                (SUPERSLAB_UNITS - bits_count(superslab->free_units)) * (size_t)UNIT_PAGES;
            stats.dirty_free_pages += superslab->dirty_free_pages;
            with_dirt += superslab->dirty_free_pages != 0;
        }
    }
    ASSERT(memcmp(&stats, &part->stats, sizeof stats) == 0);
    ASSERT(with_dirt == list_length(&part->by_dirt));
    for (unsigned i = 0; i < IDLE_WATCHERS; i++)
        ASSERT(part->unused.least[i] <= stats.dirty_free_pages);
}

void page_heap_check(void)
{
    for (unsigned i = 0; i < page_heap_parts(); i++) {
        struct page_heap_part *part = &page_heap_part[i];
        lock_acquire(&part->lock);
        check_part(part);
        lock_release(&part->lock);
    }
}

/* ---- Big blocks ------------------------------------------------------------------------------ */

static void check_cached(const struct big_part *part)
{
    size_t count = 0, dirty = 0, mapped = 0;
    for (unsigned length = 0; length < BIG_LENGTHS; length++) {
        struct list_node *node = part->by_size[length].first;
        ASSERT(bitmap_test(part->lengths, length) == (node != NULL));
        for (; node; node = node->next, count++) {
            struct big *big = CONTAINER_OF(node, struct big, by_size);
            ASSERT(big->cached && !big->live && big_part_length_of(big->mapped) == length);
            ASSERT(big_part_of(big) == part);
            ASSERT(big->dirty <= big->mapped && list_contains(&big->by_age));
            ASSERT(page_map_lookup(big->region.base) == &big->region);
            dirty += big->dirty;
            mapped += big->mapped;
        }
    }
    size_t rests = 0;
    for (struct list_node *node = part->by_age.first; node; node = node->next) {
        const struct big *big = CONTAINER_OF(node, struct big, by_age);
        count -= big->cached;
        ASSERT(big->cached ? !big->rest : big->live && big->rest);
        ASSERT(big->dirty <= big->mapped + big->rest);
        rests += big->live ? big->dirty - size_min(big->dirty, big->mapped) : 0;
        mapped += big->rest;
    }
    ASSERT(count == 0 && dirty + rests == part->cached_bytes && rests == part->rest_bytes);
    ASSERT(mapped == part->mapped_bytes);
}

static void check_mappings(const struct big_part *part)
{
    size_t live = 0, cached = 0, blocks = 0;
    for (struct region *region = NULL; (region = page_map_next(region)) != NULL;) {
        const struct big *big = (struct big *)region;
        if (region->kind != REGION_BIG || big_part_of(big) != part)
            continue;
        live += big->live ? big->mapped : 0;
        blocks += big->live;
        cached += big->cached ? big->mapped : big->rest;
    }
    ASSERT(live == part->live_bytes && blocks == part->allocated - part->freed);
    ASSERT(cached == part->mapped_bytes);
}

void big_cache_check(void)
{
    for (unsigned i = 0; i < big_cache_parts(); i++) {
        struct big_part *part = &big_parts[i];
        lock_acquire(&part->lock);
        check_cached(part);
        check_mappings(part);
        lock_release(&part->lock);
    }
}
