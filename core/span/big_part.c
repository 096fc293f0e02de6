/* See big_part.h. */
#include "span/big_part.h"

#include <string.h>

#include "base/bits.h"
#include "base/tuning.h"
#include "map/metadata.h"

struct big_part big_parts[BIG_PARTS];

void big_part_lock_with_spare(struct big_part *part)
{
    lock_acquire(&part->lock);
    while (UNLIKELY(!part->spares.first)) {
        lock_release(&part->lock);
        struct big *spare = metadata_alloc(sizeof *spare);
        if (spare) {
            spare->region.kind = REGION_BIG;
            spare->part = (uint8_t)(part - big_parts);
        }
        lock_acquire(&part->lock);
        if (!spare)
            break;
        list_push(&part->spares, &spare->by_size);
    }
}

/* Leaves `part` unchanged: threads in other parts, which find the record by the page map, read
 * that. */
struct big *big_part_record(struct big_part *part, char *base, size_t mapped)
{
    struct big *big = LIST_ENTRY(part->spares.first, struct big, by_size);
    if (!big)
        return NULL;
    list_remove(&big->by_size);
    memset(&big->mapped, 0, sizeof *big - offsetof(struct big, mapped));
    big->region.base = base;
    big->mapped = mapped;
    page_map_register(&big->region);
    return big;
}

unsigned big_part_length_of(size_t size)
{
    size_t regions = size >> REGION_SHIFT, doublings = 0;
    while (regions >> doublings >= (size_t)2 * BIG_LENGTH_STEPS)
        doublings++;
    return (unsigned)size_min(
        doublings * BIG_LENGTH_STEPS + (regions >> doublings), BIG_LENGTHS - 1);
}

void big_part_count(struct big_part *part, size_t before, size_t now)
{
    COUNTER_ADD(&part->live_bytes, now - before);
    COUNTER_ADD(&part->taken_bytes, now > before ? now - before : 0);
}

/* Puts what is cached of a mapping, `dirty` and `mapped` bytes, into the queue, or takes it out. */
static void enqueue(struct big_part *part, struct big *big, size_t dirty, size_t mapped)
{
    queue_push(&part->by_age, &big->by_age);
    COUNTER_ADD(&part->cached_bytes, dirty);
    COUNTER_ADD(&part->mapped_bytes, mapped);
}

static void dequeue(struct big_part *part, struct big *big, size_t dirty, size_t mapped)
{
    queue_remove(&part->by_age, &big->by_age);
    COUNTER_ADD(&part->cached_bytes, -dirty);
    COUNTER_ADD(&part->mapped_bytes, -mapped);
}

void big_part_insert(struct big_part *part, struct big *big)
{
    unsigned length = big_part_length_of(big->mapped);
    big->cached = true;
    KEEP_STORE_ORDER();
    list_push(&part->by_size[length], &big->by_size);
    bitmap_set(part->lengths, length);
    enqueue(part, big, big->dirty, big->mapped);
}

void big_part_extract(struct big_part *part, struct big *big)
{
    unsigned length = big_part_length_of(big->mapped);
    big->cached = false;
    KEEP_STORE_ORDER();
    list_remove(&big->by_size);
    if (!part->by_size[length].first)
        bitmap_clear(part->lengths, length);
    dequeue(part, big, big->dirty, big->mapped);
}

/* Dirty bytes of a live block's rest. */
static size_t dirty_rest(const struct big *big)
{
    return big->dirty - size_min(big->dirty, big->mapped);
}

static void enqueue_rest(struct big_part *part, struct big *big)
{
    if (!big->rest)
        return;
    enqueue(part, big, dirty_rest(big), big->rest);
    COUNTER_ADD(&part->rest_bytes, dirty_rest(big));
}

static void dequeue_rest(struct big_part *part, struct big *big)
{
    if (!big->rest)
        return;
    dequeue(part, big, dirty_rest(big), big->rest);
    COUNTER_ADD(&part->rest_bytes, -dirty_rest(big));
}

/* A fork may fall between any two stores: then, too, block and rest are within the mapping. */
static void set_length(struct big *big, size_t mapped, size_t rest)
{
    big->rest = 0;
    KEEP_STORE_ORDER();
    big->mapped = mapped;
    KEEP_STORE_ORDER();
    big->rest = rest;
}

/* Lays out a live block of `size` bytes, which counts with `before`, and a rest. A rest of less
 * than a region is not worth it. */
static void lay_out(struct big_part *part, struct big *big, size_t size, size_t before)
{
    size_t whole = big->mapped + big->rest;
    size_t mapped = round_up(size_min(size, whole), big->huge ? REGION_SIZE : UNIT_SIZE);
    bool all = mapped + REGION_SIZE > whole;
    set_length(big, all ? whole : mapped, all ? 0 : whole - mapped);
    big_part_count(part, before, big->mapped);
    enqueue_rest(part, big);
}

void big_part_hand_out(struct big_part *part, struct big *big, size_t size)
{
    big->live = true;
    part->allocated++;
    lay_out(part, big, size, 0);
}

void big_part_fit(struct big_part *part, struct big *big, size_t size)
{
    size_t before = big->mapped;
    dequeue_rest(part, big);
    big->dirty = size_max(big->dirty, before);
    lay_out(part, big, size, before);
}

void big_part_retire(struct big_part *part, struct big *big)
{
    dequeue_rest(part, big);
    big->live = false;
    part->freed++;
    big_part_count(part, big->mapped, 0);
    big->dirty = size_max(big->dirty, big->mapped);
    set_length(big, big->mapped + big->rest, 0);
}

struct big *big_part_detach(struct big_part *part, struct big *big, size_t bytes)
{
    size_t whole = big->mapped + big->rest, kept = big->dirty - size_min(big->dirty, bytes);
    /* Both pieces are at least a region long, or there is one. */
    kept = round_down(size_min(kept, whole - REGION_SIZE), big->huge ? REGION_SIZE : UNIT_SIZE);
    kept = kept < big->mapped + REGION_SIZE ? big->mapped : kept;
    char *base = big->region.base + kept;
    bool possible = part->spares.first && page_map_is_prepared(base);
    size_t dirty = big->dirty - size_min(big->dirty, kept);
    dequeue_rest(part, big);
    if (possible) {
        big->rest = kept - big->mapped;
        KEEP_STORE_ORDER();
        ATOMIC_STORE_RELAXED(&big->dirty, size_min(big->dirty, kept));
        KEEP_STORE_ORDER();
    }
    enqueue_rest(part, big);
    struct big *end = possible ? big_part_record(part, base, whole - kept) : NULL;
    if (end) {
        end->huge = big->huge;
        end->dirty = dirty;
    }
    return end;
}

void big_part_note_unused(struct big_part *part)
{
    idle_lower(&part->unused, part->cached_bytes);
}

struct big *big_part_find(const struct big_part *part, size_t size, size_t alignment)
{
    for (unsigned length = big_part_length_of(size);; length++) {
        length = bitmap_find(part->lengths, length, BIG_LENGTHS, true);
        if (length == BIG_LENGTHS)
            return NULL;
        struct list_node *node = part->by_size[length].first;
        for (unsigned tries = 0; node && tries < FIT_TRIES; node = node->next, tries++) {
            struct big *big = CONTAINER_OF(node, struct big, by_size);
            if (big->mapped >= size && ((uintptr_t)big->region.base & (alignment - 1)) == 0)
                return big;
        }
    }
}

struct big *big_part_find_shorter(const struct big_part *part, size_t size)
{
    for (unsigned length = big_part_length_of(size) + 1;
         length-- > big_part_length_of(size / LENGTHENED_PART);) {
        struct big *big = LIST_ENTRY(part->by_size[length].first, struct big, by_size);
        if (big && big->mapped < size && big->mapped >= size / LENGTHENED_PART)
            return big;
    }
    return NULL;
}

/* The page map knows all mappings, including live ones and those that a thread works on. */
void big_cache_repair(unsigned part_index)
{
    struct big_part *part = &big_parts[part_index];
    uint64_t live_blocks = 0;
    memset(part->by_size, 0, sizeof part->by_size);
    memset(part->lengths, 0, sizeof part->lengths);
    part->by_age.first = NULL;
    part->live_bytes = part->cached_bytes = part->rest_bytes = part->mapped_bytes = 0;
    part->spares.first = NULL;
    for (struct region *region = NULL; (region = page_map_next(region)) != NULL;) {
        struct big *big = (struct big *)region;
        if (region->kind != REGION_BIG || big->part != part_index)
            continue;
        /* The thread may have been about to count what it had cut off. */
        big->dirty = size_min(big->dirty, big->mapped + big->rest);
        if (big->live) {
            live_blocks++;
            part->live_bytes += big->mapped;
            enqueue_rest(part, big);
        } else if (big->cached) {
            big_part_insert(part, big);
        }
    }
    /* A block that was being handed out may not be counted yet. */
    part->allocated = part->allocated < live_blocks ? live_blocks : part->allocated;
    part->freed = part->allocated - live_blocks;
    big_part_note_unused(part);
}
