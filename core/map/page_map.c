/* See page_map.h.
 *
 * Writers hold no lock: each entry is written by the one thread that owns the region, and leaves
 * are installed by compare-and-swap.
 */
#include "map/page_map.h"

#include "base/assert.h"
#include "hardened.h"
#include "map/metadata.h"
#include "os/os.h"

struct leaf *page_map_root[1 << ROOT_BITS];

/* Numbers of the first and the last 2 MiB that a region has started in; atomic relaxed, any thread.
 */
static size_t first_used = SIZE_MAX, last_used;

static size_t map_bytes; /* atomic relaxed, any thread: leaves and writable pieces */

/* With 5-level page tables a program has more, if it asks for them. */
#ifdef __x86_64__
enum { PROGRAM_BITS = 47 };
#else
enum { PROGRAM_BITS = ADDRESS_BITS };
#endif
static const uintptr_t program_end = (uintptr_t)1 << PROGRAM_BITS;

/* Class maps become writable piece by piece: one byte per 64 KiB of superslabs in use. */
enum { PIECE = 64 * 1024 };

/* Bounds the map, which may count as locked memory. */
static const size_t window_max = 64 * GIB;

/* The maps start at this offset in their first page. Their addresses mark freed blocks: the byte of
 * a mark that a program overwrites first must not be a common one, such as 0. The others are
 * random. */
enum { MAP_OFFSET = 0xa5 };

/* Words of bits for the pieces of `entries` entries, with the offset. */
#define READY_WORDS(entries) ((entries) / PIECE / 64 + 1)

static uint64_t window_ready[READY_WORDS(64 * GIB / UNIT_SIZE)];
static uint64_t wide_ready[READY_WORDS(((size_t)2 << PROGRAM_BITS) / UNIT_SIZE)];

struct class_map class_map = {.base = (uintptr_t)1 << 63, .ready = window_ready};
struct class_map wide_class_map = {.ready = wide_ready};

static uint8_t *reserve_map(size_t entries, const void *near)
{
    uint8_t *pages = os_reserve_scattered(entries + PIECE, near);
    return pages ? pages + MAP_OFFSET : NULL;
}

bool class_map_init(const void *address)
{
    size_t window = window_max;
    size_t limit = os_address_space_limit();
    while (window > GIB && window / UNIT_SIZE > limit / 256)
        window /= 2;
    class_map.classes = reserve_map(window / UNIT_SIZE, address);
    if (!class_map.classes)
        return false;
    /* Linux places mappings downwards: most of the window lies below the first one. */
    uintptr_t centre = round_down((uintptr_t)address, REGION_SIZE);
    uintptr_t below = window / 4 * 3;
    class_map.base = centre > below ? centre - below : REGION_SIZE;
    class_map.limit = window / UNIT_SIZE;
    wide_class_map.base = class_map.base - program_end;
    wide_class_map.limit = (program_end - wide_class_map.base) >> UNIT_SHIFT;
    return true;
}

size_t page_map_bytes(void)
{
    return ATOMIC_LOAD_RELAXED(&map_bytes);
}

static size_t index_of(const struct class_map *map, const void *address)
{
    return ((uintptr_t)address - map->base) >> UNIT_SHIFT;
}

static bool is_ready(const struct class_map *map, size_t piece)
{
    return ATOMIC_LOAD_RELAXED(&map->ready[piece / 64]) >> piece % 64 & 1;
}

/* Makes the wide map, unless another thread has. If that fails, the next superslab outside of the
 * window tries again. Under a lock: of two maps one would have to go, which may be refused. */
static void make_wide(void)
{
    /* The program needs its few addresses itself. */
    if (os_address_space_limit() != SIZE_MAX)
        return;
    lock_acquire(&metadata.lock);
    if (!ATOMIC_LOAD_RELAXED(&wide_class_map.classes))
        ATOMIC_STORE_RELEASE(
            &wide_class_map.classes, reserve_map(wide_class_map.limit, class_map.classes));
    lock_release(&metadata.lock);
}

/* Makes the part of the map for a superslab writable. */
static bool prepare_part(struct class_map *map, const void *address)
{
    size_t index = index_of(map, address);
    uint8_t *classes = ATOMIC_LOAD_RELAXED(&map->classes);
    if (!classes || index >= map->limit)
        return true;
    size_t end = size_min(index + REGION_SIZE / UNIT_SIZE, map->limit) + MAP_OFFSET;
    for (size_t piece = (index + MAP_OFFSET) / PIECE; piece * PIECE < end; piece++) {
        if (is_ready(map, piece))
            continue;
        if (!os_make_writable(classes - MAP_OFFSET + piece * PIECE, PIECE))
            return false;
        uint64_t bit = (uint64_t)1 << piece % 64;
        if (!(__atomic_fetch_or(&map->ready[piece / 64], bit, __ATOMIC_RELAXED) & bit))
            ATOMIC_ADD_RELAXED(&map_bytes, PIECE);
    }
    return true;
}

bool class_map_prepare(const void *address)
{
    if (index_of(&class_map, address) >= class_map.limit && class_map_newest() == &class_map)
        make_wide();
    return prepare_part(&class_map, address) && prepare_part(&wide_class_map, address);
}

static void set(struct class_map *map, const void *address, unsigned units, unsigned class)
{
    size_t index = index_of(map, address);
    uint8_t *classes = ATOMIC_LOAD_RELAXED(&map->classes);
    for (; classes && units && index < map->limit; units--, index++)
        if (is_ready(map, (index + MAP_OFFSET) / PIECE))
            ATOMIC_STORE_RELAXED(&classes[index], (uint8_t) class);
}

void class_map_set(const void *address, unsigned units, unsigned class)
{
    set(&class_map, address, units, class);
    set(&wide_class_map, address, units, class);
}

/* The leaf of the first superslab is part of the library: most processes map none. */
static struct leaf first_leaf;
static bool first_leaf_taken; /* atomic relaxed, any thread */

static struct leaf *leaf_map(void)
{
    if (HARDENED)
        return hardened_map_records(sizeof(struct leaf), false);
    if (!__atomic_exchange_n(&first_leaf_taken, true, __ATOMIC_RELAXED))
        return &first_leaf;
    return os_map(sizeof(struct leaf), os_page_size(), NULL);
}

/* Discards a leaf that was not installed, and so is still all zero. */
static void leaf_discard(struct leaf *leaf)
{
    if (leaf == &first_leaf)
        ATOMIC_STORE_RELAXED(&first_leaf_taken, false);
    else
        os_discard(leaf, sizeof *leaf);
}

/* Installs the zeroed leaf at the index, unless that has one. */
static void leaf_install(size_t index, struct leaf *fresh)
{
    struct leaf *present = NULL;
    if (__atomic_compare_exchange_n(
            &page_map_root[index], &present, fresh, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ATOMIC_ADD_RELAXED(&map_bytes, sizeof(struct leaf));
    else
        leaf_discard(fresh);
}

static struct leaf *spare_leaf; /* atomic: release on store pairs with acquire on taking it */

static size_t region_index(const void *address)
{
    size_t index = (uintptr_t)address >> REGION_SHIFT;
    ASSERT(index < (size_t)1 << (ROOT_BITS + LEAF_BITS));
    return index;
}

static void widen(size_t at)
{
    size_t first = ATOMIC_LOAD_RELAXED(&first_used), last = ATOMIC_LOAD_RELAXED(&last_used);
    while (first > at && !__atomic_compare_exchange_n(
                             &first_used, &first, at, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
    while (last < at && !__atomic_compare_exchange_n(
                            &last_used, &last, at, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
}

bool page_map_prepare(const void *address)
{
    /* Processors with five levels of page tables have addresses beyond the map. Linux gives them
     * out only on request. */
    if (UNLIKELY((uintptr_t)address >> ADDRESS_BITS != 0))
        return false;
    widen(region_index(address));
    size_t index = region_index(address) >> LEAF_BITS;
    if (ATOMIC_LOAD_ACQUIRE(&page_map_root[index]))
        return true;
    struct leaf *leaf = leaf_map();
    if (leaf)
        leaf_install(index, leaf);
    return leaf != NULL;
}

bool page_map_is_prepared(const void *address)
{
    return ATOMIC_LOAD_ACQUIRE(&page_map_root[region_index(address) >> LEAF_BITS]) != NULL;
}

bool page_map_take_spare(struct page_map_spare *spare)
{
    spare->leaf = __atomic_exchange_n(&spare_leaf, NULL, __ATOMIC_ACQUIRE);
    if (!spare->leaf)
        spare->leaf = leaf_map();
    return spare->leaf != NULL;
}

void page_map_prepare_by_spare(struct page_map_spare *spare, const void *address)
{
    size_t index = region_index(address) >> LEAF_BITS;
    struct leaf *none = NULL;
    widen(region_index(address));
    if (!ATOMIC_LOAD_ACQUIRE(&page_map_root[index]))
        leaf_install(index, spare->leaf);
    else if (!__atomic_compare_exchange_n(
                 &spare_leaf, &none, spare->leaf, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        leaf_discard(spare->leaf);
}

static void set_entry(const void *address, uintptr_t entry)
{
    size_t index = region_index(address);
    struct leaf *leaf = ATOMIC_LOAD_ACQUIRE(&page_map_root[index >> LEAF_BITS]);
    ATOMIC_STORE_RELEASE(&leaf->entry[index & ((1 << LEAF_BITS) - 1)], entry);
}

uintptr_t page_map_reserve(size_t bytes)
{
    size_t length = round_up(bytes, REGION_SIZE) + REGION_SIZE;
    char *memory = os_reserve(length);
    if (!memory)
        return 0;
    if (os_make_untouchable(memory, length))
        return round_up((uintptr_t)memory, REGION_SIZE);
    os_unmap(memory, length);
    return 0;
}

void page_map_register(struct region *region)
{
    bool superslab = region->kind == REGION_SUPERSLAB;
    set_entry(region->base, (uintptr_t)region + (superslab ? ENTRY_SUPERSLAB : 0));
}

void page_map_unregister(const struct region *region)
{
    set_entry(region->base, 0);
}

struct region *page_map_next(const struct region *region)
{
    enum { LEAF_ENTRIES = 1 << LEAF_BITS };
    size_t index = region ? region_index(region->base) + 1 : ATOMIC_LOAD_RELAXED(&first_used);
    while (index <= ATOMIC_LOAD_RELAXED(&last_used)) {
        struct leaf *leaf = ATOMIC_LOAD_ACQUIRE(&page_map_root[index >> LEAF_BITS]);
        if (!leaf) {
            index = round_down(index, LEAF_ENTRIES) + LEAF_ENTRIES;
            continue;
        }
        uintptr_t next = ATOMIC_LOAD_ACQUIRE(&leaf->entry[index++ & (LEAF_ENTRIES - 1)]);
        if (next)
            return page_map_region(next);
    }
    return NULL;
}

/* The nearest entry below that of the address that is not 0; 0: none. */
static uintptr_t find_below(const void *address)
{
    size_t index = (uintptr_t)address >> REGION_SHIFT;
    while (index > ATOMIC_LOAD_RELAXED(&first_used)) {
        struct leaf *leaf = ATOMIC_LOAD_ACQUIRE(&page_map_root[--index >> LEAF_BITS]);
        uintptr_t entry = leaf ? page_map_entry(leaf, (const void *)(index << REGION_SHIFT)) : 0;
        if (entry)
            return entry;
        if (!leaf)
            index = round_down(index, (size_t)1 << LEAF_BITS);
    }
    return 0;
}

struct region *page_map_nearest(const void *address)
{
    if ((uintptr_t)address >> ADDRESS_BITS != 0)
        return NULL;
    struct region *here = page_map_lookup(address);
    bool starts_below = here && (const char *)here->base <= (const char *)address;
    return starts_below ? here : page_map_region(find_below(address));
}
