/* See big_part.h. */
#include "span/big_part.h"

#include <string.h>

#include "base/bits.h"
#include "base/poison.h"
#include "base/tuning.h"
#include "map/metadata.h"
#include "scope/scope.h"

static struct big_part first_part;

struct parts big_parts = {.part = {&first_part}, .count = 1, .size = sizeof(struct big_part)};

struct big_part *big_part_lock_with_spares(unsigned number)
{
    struct big_part *part = big_part_at(number);
    lock_acquire(&part->lock);
    while (UNLIKELY(!part->spares.first || !part->spares.first->next)) {
        lock_release(&part->lock);
        struct big *spare = metadata_alloc(sizeof *spare);
        if (spare) {
            spare->region.kind = REGION_BIG;
            spare->part = number;
        }
        lock_acquire(&part->lock);
        if (!spare)
            break;
        list_push(&part->spares, &spare->by_size);
    }
    return part;
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

static void add_cached(struct big_part *part, const struct big *big, size_t sign)
{
    COUNTER_ADD(&part->cached_bytes, sign * big->dirty);
    COUNTER_ADD(&part->mapped_bytes, sign * big->mapped);
}

void big_part_insert(struct big_part *part, struct big *big)
{
    unsigned length = big_part_length_of(big->mapped);
    big->cached = true;
    KEEP_STORE_ORDER();
    list_push(&part->by_size[length], &big->by_size);
    bitmap_set(part->lengths, length);
    queue_push(&part->by_age, &big->by_age);
    add_cached(part, big, 1);
}

void big_part_extract(struct big_part *part, struct big *big)
{
    unsigned length = big_part_length_of(big->mapped);
    big->cached = false;
    KEEP_STORE_ORDER();
    list_remove(&big->by_size);
    if (!part->by_size[length].first)
        bitmap_clear(part->lengths, length);
    queue_remove(&part->by_age, &big->by_age);
    add_cached(part, big, (size_t)-1);
}

void big_part_note_unused(struct big_part *part)
{
    idle_lower(&part->unused, part->cached_bytes);
}

/* The mapping of a page map entry, if the part has it cached. Of another part's mapping, which may
 * be about to end, reads the part alone. */
static struct big *cached_by(const struct big_part *part, uintptr_t entry)
{
    struct big *big = (struct big *)entry;
    bool ours = entry && !(entry & ENTRY_SUPERSLAB) &&
                (!SCOPES || big->region.kind == REGION_BIG) && big_part_of(big) == part;
    return ours && big->cached ? big : NULL;
}

struct big *big_part_cached_at(const struct big_part *part, const char *address)
{
    struct big *big = cached_by(part, page_map_find(address));
    return big && big->region.base == address ? big : NULL;
}

/* The cached mapping that ends there, unless it is so long that the search for its start would cost
 * more. */
static struct big *cached_before(const struct big_part *part, const char *address)
{
    struct big *big = cached_by(part, page_map_find_below(address, NEIGHBOUR_ENTRIES));
    return big && big->region.base + big->mapped == address ? big : NULL;
}

void big_part_join(struct big_part *part, struct big *low, struct big *high)
{
    page_map_unregister(&high->region);
    KEEP_STORE_ORDER();
    if (high->dirty) {
        low->dirty = low->mapped + high->dirty;
        low->zeroed &= high->zeroed;
        low->swept = (uint8_t)size_min(low->swept, high->swept);
    }
    low->mapped += high->mapped;
    list_push(&part->spares, &high->by_size);
}

static bool may_join(const struct big *low, const struct big *high)
{
    return low->huge == high->huge && low->origin == high->origin &&
           (high->dirty == 0 || low->dirty == low->mapped);
}

void big_part_take_in(struct big_part *part, struct big *big)
{
    struct big *before = cached_before(part, big->region.base);
    struct big *after = big_part_cached_at(part, big->region.base + big->mapped);
    if (after && may_join(big, after)) {
        big_part_extract(part, after);
        big_part_join(part, big, after);
    }
    if (before && may_join(before, big)) {
        big_part_extract(part, before);
        big_part_join(part, before, big);
        big = before;
    }
    big_part_insert(part, big);
}

bool big_part_split(struct big_part *part, struct big *big, size_t size)
{
    size_t kept = round_up(size, big->huge ? REGION_SIZE : UNIT_SIZE);
    char *base = big->region.base + kept;
    if (big->mapped < kept + REGION_SIZE || !page_map_is_prepared(base))
        return false;
    struct big *rest = big_part_record(part, base, big->mapped - kept);
    if (!rest)
        return false;
    rest->huge = big->huge;
    rest->zeroed = big->zeroed;
    rest->swept = big->swept;
    rest->origin = big->origin;
    rest->dirty = big->dirty > kept ? big->dirty - kept : 0;
    KEEP_STORE_ORDER();
    big->mapped = kept;
    big->dirty = size_min(big->dirty, kept);
    poison(base, rest->mapped);
    big_part_take_in(part, rest);
    return true;
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
    for (unsigned length = big_part_length_of(size) + 1; length-- > big_part_length_of(size / 2);) {
        struct big *big = LIST_ENTRY(part->by_size[length].first, struct big, by_size);
        if (big && big->mapped < size && big->mapped >= size / 2)
            return big;
    }
    return NULL;
}

void big_part_hand_out(struct big_part *part, struct big *big)
{
    big->live = true;
    part->allocated++;
    big_part_count(part, 0, big->mapped);
}

/* The page map knows all mappings, including live ones and those that a thread works on. */
void big_cache_repair(unsigned part_index)
{
    struct big_part *part = big_part_at(part_index);
    uint64_t live_blocks = 0;
    memset(part->by_size, 0, sizeof part->by_size);
    memset(part->lengths, 0, sizeof part->lengths);
    part->by_age.first = NULL;
    part->live_bytes = part->cached_bytes = part->mapped_bytes = 0;
    part->spares.first = NULL;
    for (struct region *region = NULL; (region = page_map_next(region)) != NULL;) {
        struct big *big = (struct big *)region;
        if (region->kind != REGION_BIG || big->part != part_index)
            continue;
        if (big->live) {
            live_blocks++;
            part->live_bytes += big->mapped;
        } else if (big->cached) {
            big_part_insert(part, big);
        }
    }
    /* A block that was being handed out may not be counted yet. */
    part->allocated = part->allocated < live_blocks ? live_blocks : part->allocated;
    part->freed = part->allocated - live_blocks;
    big_part_note_unused(part);
}
