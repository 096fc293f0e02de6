/* All mappings of a part of the BigCache, wherever they are: what the child of fork puts right, and
 * the walker of tests. The page map knows all of them, also those that are live or worked on. */
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "span/big_part.h"

void big_cache_repair(unsigned part_index)
{
    struct big_part *part = big_part_at(part_index);
    uint64_t live_blocks = 0;
    struct big *low = NULL;
    memset(part->shelf, 0, sizeof part->shelf);
    part->live_bytes = part->bytes[BIG_DIRTY] = part->bytes[BIG_CLEAN] = part->mapped_bytes = 0;
    part->newest = NULL;
    part->spares.first = NULL;
    for (struct region *region = NULL; (region = page_map_next(region)) != NULL;) {
        struct big *big = (struct big *)region;
        if (region->kind != REGION_BIG || big->part != part_index)
            continue;
        big->before = big->after = NULL;
        if (big_part_touch(low, big))
            big_part_link(low, big);
        low = big;
        if (big->live) {
            live_blocks++;
            part->live_bytes += big->mapped;
        } else if (big->cached) {
            big_part_insert(part, big);
        }
    }
    /* One that was being handed out may not be counted yet. */
    part->allocated = part->allocated < live_blocks ? live_blocks : part->allocated;
    part->freed = part->allocated - live_blocks;
    big_part_note_unused(part);
}

static void check_shelf(struct big_part *part, unsigned index, size_t *bytes, size_t *mapped)
{
    const struct big_shelf *shelf = &part->shelf[index];
    size_t count = 0;
    for (unsigned length = 0; length < BIG_LENGTHS; length++) {
        struct list_node *node = shelf->by_size[length].first;
        ASSERT(bitmap_test(shelf->lengths, length) == (node != NULL));
        for (; node; node = node->next, count++) {
            struct big *big = CONTAINER_OF(node, struct big, by_size);
            ASSERT(big->cached && !big->live && big_part_length_of(big->mapped) == length);
            ASSERT(big_part_at(big->part) == part && big_part_shelf_of(big) == index);
            ASSERT(big->dirty <= big->mapped && list_contains(&big->by_age));
            ASSERT(page_map_lookup(big->region.base) == &big->region);
            *bytes += big->dirty ? big->dirty : big->mapped;
            *mapped += big->mapped;
        }
    }
    for (struct list_node *node = shelf->by_age.first; node; node = node->next)
        count--;
    ASSERT(count == 0);
}

static void check_neighbours(const struct big_part *part)
{
    size_t live = 0, cached = 0, blocks = 0;
    for (struct region *region = NULL; (region = page_map_next(region)) != NULL;) {
        const struct big *big = (struct big *)region;
        if (region->kind != REGION_BIG || big_part_at(big->part) != part)
            continue;
        const struct big *after = big->after;
        ASSERT(!after || (after->before == big && after->part == big->part));
        ASSERT(!after || big->region.base + big->mapped == after->region.base);
        ASSERT(!big->before || big->before->after == big);
        ASSERT(!(big->cached && after && after->cached && big_part_may_join(big, after)));
        live += big->live ? big->mapped : 0;
        blocks += big->live;
        cached += big->cached ? big->mapped : 0;
    }
    ASSERT(live == part->live_bytes && blocks == part->allocated - part->freed);
    ASSERT(cached == part->mapped_bytes);
}

void big_cache_check(void)
{
    for (unsigned i = 0; i < big_cache_parts(); i++) {
        size_t bytes[BIG_SHELVES] = {0}, mapped = 0;
        struct big_part *part = big_part_at(i);
        lock_acquire(&part->lock);
        for (unsigned shelf = 0; shelf < BIG_SHELVES; shelf++)
            check_shelf(part, shelf, &bytes[shelf], &mapped);
        ASSERT(
            bytes[BIG_DIRTY] == part->bytes[BIG_DIRTY] &&
            bytes[BIG_CLEAN] == part->bytes[BIG_CLEAN]);
        ASSERT(mapped == part->mapped_bytes);
        check_neighbours(part);
        lock_release(&part->lock);
    }
}
