/* See big_part.h. */
#include "span/big_part.h"

#include "base/bits.h"
#include "base/poison.h"
#include "map/metadata.h"

static struct big_part first_part;

struct parts big_parts = {.part = {&first_part}, .count = 1, .size = sizeof(struct big_part)};

void big_part_lock_with_spare(struct big_part *part)
{
    lock_acquire(&part->lock);
    if (LIKELY(part->spares.first != NULL))
        return;
    lock_release(&part->lock);
    struct big *spare = metadata_alloc(sizeof *spare);
    lock_acquire(&part->lock);
    if (spare)
        list_push(&part->spares, &spare->by_size);
}

unsigned big_part_length_of(size_t size)
{
    size_t regions = size >> REGION_SHIFT, doublings = 0;
    while (regions >> doublings >= (size_t)2 * BIG_LENGTH_STEPS)
        doublings++;
    return (unsigned)size_min(
        doublings * BIG_LENGTH_STEPS + (regions >> doublings), BIG_LENGTHS - 1);
}

unsigned big_part_shelf_of(const struct big *big)
{
    return big->dirty ? BIG_DIRTY : BIG_CLEAN;
}

static void add_bytes(size_t *sum, size_t bytes)
{
    ATOMIC_STORE_RELAXED(sum, *sum + bytes);
}

void big_part_add_live(struct big_part *part, size_t bytes)
{
    add_bytes(&part->live_bytes, bytes);
    if (part->live_bytes > part->live_peak)
        ATOMIC_STORE_RELAXED(&part->live_peak, part->live_bytes);
}

static void add_cached(struct big_part *part, const struct big *big, size_t sign)
{
    add_bytes(&part->bytes[big_part_shelf_of(big)], sign * (big->dirty ? big->dirty : big->mapped));
    add_bytes(&part->mapped_bytes, sign * big->mapped);
}

void big_part_insert(struct big_part *part, struct big *big)
{
    struct big_shelf *shelf = &part->shelf[big_part_shelf_of(big)];
    unsigned length = big_part_length_of(big->mapped);
    big->cached = true;
    KEEP_STORE_ORDER();
    list_push(&shelf->by_size[length], &big->by_size);
    bitmap_set(shelf->lengths, length);
    queue_push(&shelf->by_age, &big->by_age);
    add_cached(part, big, 1);
}

void big_part_extract(struct big_part *part, struct big *big)
{
    struct big_shelf *shelf = &part->shelf[big_part_shelf_of(big)];
    unsigned length = big_part_length_of(big->mapped);
    big->cached = false;
    KEEP_STORE_ORDER();
    list_remove(&big->by_size);
    if (!shelf->by_size[length].first)
        bitmap_clear(shelf->lengths, length);
    queue_remove(&shelf->by_age, &big->by_age);
    add_cached(part, big, (size_t)-1);
}

void big_part_note_unused(struct big_part *part)
{
    idle_lower(&part->unused, part->bytes[BIG_DIRTY]);
}

void big_part_link(struct big *low, struct big *high)
{
    if (low)
        low->after = high;
    if (high)
        high->before = low;
}

void big_part_unlink(struct big_part *part, struct big *big)
{
    if (big->before)
        big->before->after = NULL;
    if (big->after)
        big->after->before = NULL;
    big->before = big->after = NULL;
    if (part->newest == big)
        part->newest = NULL;
}

void big_part_join(struct big_part *part, struct big *low, struct big *high)
{
    page_map_unregister(&high->region);
    KEEP_STORE_ORDER();
    low->dirty = high->dirty ? low->mapped + high->dirty : low->dirty;
    low->mapped += high->mapped;
    big_part_link(low, high->after);
    if (part->newest == high)
        part->newest = low;
    list_push(&part->spares, &high->by_size);
}

bool big_part_touch(const struct big *low, const struct big *high)
{
    return low && high && low->region.base + low->mapped == high->region.base &&
           low->huge == high->huge;
}

bool big_part_may_join(const struct big *low, const struct big *high)
{
    return big_part_touch(low, high) && (high->dirty == 0 || low->dirty == low->mapped);
}

void big_part_take_in(struct big_part *part, struct big *big)
{
    struct big *before = big->before, *after = big->after;
    if (after && after->cached && big_part_may_join(big, after)) {
        big_part_extract(part, after);
        big_part_join(part, big, after);
    }
    if (before && before->cached && big_part_may_join(before, big)) {
        big_part_extract(part, before);
        big_part_join(part, before, big);
        big = before;
    }
    big_part_insert(part, big);
}

bool big_part_split(struct big_part *part, struct big *big, size_t size)
{
    size_t kept = round_up(size, big->huge ? REGION_SIZE : UNIT_SIZE);
    char *base = (char *)big->region.base + kept;
    struct big *rest = LIST_ENTRY(part->spares.first, struct big, by_size);
    if (big->mapped < kept + REGION_SIZE || !rest || !page_map_is_prepared(base))
        return false;
    list_remove(&rest->by_size);
    *rest = (struct big){.region = {REGION_BIG, base}, .part = big->part, .huge = big->huge};
    rest->mapped = big->mapped - kept;
    rest->dirty = big->dirty > kept ? big->dirty - kept : 0;
    page_map_register(&rest->region);
    KEEP_STORE_ORDER();
    big->mapped = kept;
    big->dirty = size_min(big->dirty, kept);
    poison(base, rest->mapped);
    big_part_link(rest, big->after);
    big_part_link(big, rest);
    big_part_take_in(part, rest);
    return true;
}

/* A search looks at no more than so many mappings that turn out not to fit. */
enum { TRIES_MAX = 16 };

struct big *big_part_find(const struct big_shelf *shelf, size_t size, size_t alignment)
{
    unsigned length = big_part_length_of(size), tries = 0;
    for (;; length++) {
        length = bitmap_find(shelf->lengths, length, BIG_LENGTHS, true);
        if (length == BIG_LENGTHS)
            return NULL;
        for (struct list_node *node = shelf->by_size[length].first; node; node = node->next) {
            struct big *big = CONTAINER_OF(node, struct big, by_size);
            if (big->mapped >= size && ((uintptr_t)big->region.base & (alignment - 1)) == 0)
                return big;
            if (++tries == TRIES_MAX)
                return NULL;
        }
    }
}

struct big *big_part_find_shorter(const struct big_shelf *shelf, size_t size)
{
    for (unsigned length = big_part_length_of(size) + 1; length-- > big_part_length_of(size / 2);) {
        struct big *big = LIST_ENTRY(shelf->by_size[length].first, struct big, by_size);
        if (big && big->mapped >= size / 2)
            return big;
    }
    return NULL;
}

void big_part_hand_out(struct big_part *part, struct big *big)
{
    big->live = true;
    part->allocated++;
    big_part_add_live(part, big->mapped);
}
