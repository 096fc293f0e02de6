/* See page_map.h.
 *
 * Writers hold no lock: each entry is written by the one thread that owns the region, and leaves
 * are installed by compare-and-swap.
 */
#include "map/page_map.h"

#include "base/assert.h"
#include "os/os.h"

enum { LEAF_BITS = 13, ROOT_BITS = ADDRESS_BITS - REGION_SHIFT - LEAF_BITS };

struct leaf {
    struct region *region[1 << LEAF_BITS]; /* atomic: release on store pairs with acquire on load */
};

static struct leaf *root[1 << ROOT_BITS]; /* atomic: release on install, acquire on load */

/* The first and the last 2 MiB that a region may have started at; atomic relaxed, any thread. */
static size_t first_unit = SIZE_MAX, last_unit;

static size_t map_bytes; /* atomic relaxed, any thread: leaves and writable pieces */

struct class_map class_map = {.classes = NULL, .base = (uintptr_t)1 << 63, .limit = 0};

/* The class map becomes writable piece by piece: one byte per 64 KiB of superslabs in use. */
enum { PIECE = 64 * 1024 };

static uint8_t piece_ready[TIB / UNIT_SIZE / PIECE + 1]; /* atomic relaxed, any thread */

/* The map starts so far behind the start of its pages. Its address marks freed blocks: no byte of a
 * mark that a program may overwrite first shall be one that programs write, such as 0. */
enum { MAP_OFFSET = 0xa5 };

bool class_map_init(const void *address)
{
    size_t window = TIB;
    size_t limit = os_address_space_limit();
    while (window > GIB && window / UNIT_SIZE > limit / 256)
        window /= 2;
    size_t bytes = window / UNIT_SIZE;
    uint8_t *pages = os_reserve(bytes + PIECE);
    if (!pages)
        return false;
    /* Linux places mappings downwards: most of the window lies below the first one. */
    uintptr_t centre = round_down((uintptr_t)address, REGION_SIZE);
    uintptr_t below = window / 4 * 3;
    class_map.classes = pages + MAP_OFFSET;
    class_map.base = centre > below ? centre - below : REGION_SIZE;
    class_map.limit = bytes;
    return true;
}

size_t page_map_bytes(void)
{
    return ATOMIC_LOAD_RELAXED(&map_bytes);
}

bool class_map_prepare(const void *address)
{
    size_t index = ((uintptr_t)address - class_map.base) >> UNIT_SHIFT;
    if (index >= class_map.limit)
        return true;
    size_t end = size_min(index + REGION_SIZE / UNIT_SIZE, class_map.limit) + MAP_OFFSET;
    for (size_t piece = (index + MAP_OFFSET) / PIECE; piece * PIECE < end; piece++) {
        if (ATOMIC_LOAD_RELAXED(&piece_ready[piece]))
            continue;
        if (!os_make_writable(class_map.classes - MAP_OFFSET + piece * PIECE, PIECE))
            return false;
        ATOMIC_STORE_RELAXED(&piece_ready[piece], 1);
        ATOMIC_ADD_RELAXED(&map_bytes, PIECE);
    }
    return true;
}

void class_map_set(const void *address, unsigned units, unsigned class)
{
    size_t index = ((uintptr_t)address - class_map.base) >> UNIT_SHIFT;
    for (unsigned i = 0; i < units && index + i < class_map.limit; i++)
        ATOMIC_STORE_RELAXED(&class_map.classes[index + i], (uint8_t) class);
}

static struct leaf *leaf_map(void)
{
    return os_map(sizeof(struct leaf), os_page_size(), NULL);
}

/* Makes the zeroed leaf that of the index, unless it has one. */
static void leaf_install(size_t index, struct leaf *fresh)
{
    struct leaf *present = NULL;
    if (__atomic_compare_exchange_n(
            &root[index], &present, fresh, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ATOMIC_ADD_RELAXED(&map_bytes, sizeof(struct leaf));
    else
        os_discard(fresh, sizeof(struct leaf));
}

static struct leaf *spare_leaf; /* atomic: release on store pairs with acquire on taking it */

static size_t unit_of(const void *address)
{
    size_t unit = (uintptr_t)address >> REGION_SHIFT;
    ASSERT(unit < (size_t)1 << (ROOT_BITS + LEAF_BITS));
    return unit;
}

static void widen(size_t unit)
{
    size_t first = ATOMIC_LOAD_RELAXED(&first_unit), last = ATOMIC_LOAD_RELAXED(&last_unit);
    while (first > unit && !__atomic_compare_exchange_n(
                               &first_unit, &first, unit, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
    while (last < unit && !__atomic_compare_exchange_n(
                              &last_unit, &last, unit, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
}

bool page_map_prepare(const void *address)
{
    /* Processors with five levels of page tables have addresses beyond the map. Linux gives them
     * out only to who asks for one; nobody here does. */
    if (UNLIKELY((uintptr_t)address >> ADDRESS_BITS != 0))
        return false;
    widen(unit_of(address));
    size_t index = unit_of(address) >> LEAF_BITS;
    if (ATOMIC_LOAD_ACQUIRE(&root[index]))
        return true;
    struct leaf *leaf = leaf_map();
    if (leaf)
        leaf_install(index, leaf);
    return leaf != NULL;
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
    size_t index = unit_of(address) >> LEAF_BITS;
    struct leaf *none = NULL;
    widen(unit_of(address));
    if (!ATOMIC_LOAD_ACQUIRE(&root[index]))
        leaf_install(index, spare->leaf);
    else if (!__atomic_compare_exchange_n(
                 &spare_leaf, &none, spare->leaf, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        os_discard(spare->leaf, sizeof(struct leaf));
}

static void set_entry(const void *address, struct region *region)
{
    size_t unit = unit_of(address);
    struct leaf *leaf = ATOMIC_LOAD_ACQUIRE(&root[unit >> LEAF_BITS]);
    ATOMIC_STORE_RELEASE(&leaf->region[unit & ((1 << LEAF_BITS) - 1)], region);
}

void page_map_register(struct region *region)
{
    set_entry(region->base, region);
}

void page_map_unregister(const struct region *region)
{
    set_entry(region->base, NULL);
}

struct region *page_map_lookup(const void *address)
{
    size_t unit = (uintptr_t)address >> REGION_SHIFT;
    if (UNLIKELY(unit >= (size_t)1 << (ROOT_BITS + LEAF_BITS)))
        return NULL;
    struct leaf *leaf = ATOMIC_LOAD_ACQUIRE(&root[unit >> LEAF_BITS]);
    if (!leaf)
        return NULL;
    return ATOMIC_LOAD_ACQUIRE(&leaf->region[unit & ((1 << LEAF_BITS) - 1)]);
}

struct region *page_map_next(const struct region *region)
{
    enum { LEAF_ENTRIES = 1 << LEAF_BITS };
    size_t unit = region ? unit_of(region->base) + 1 : ATOMIC_LOAD_RELAXED(&first_unit);
    while (unit <= ATOMIC_LOAD_RELAXED(&last_unit)) {
        struct leaf *leaf = ATOMIC_LOAD_ACQUIRE(&root[unit >> LEAF_BITS]);
        if (!leaf) {
            unit = round_down(unit, LEAF_ENTRIES) + LEAF_ENTRIES;
            continue;
        }
        struct region *next = ATOMIC_LOAD_ACQUIRE(&leaf->region[unit++ & (LEAF_ENTRIES - 1)]);
        if (next)
            return next;
    }
    return NULL;
}

struct region *page_map_nearest(const void *address)
{
    size_t unit = (uintptr_t)address >> REGION_SHIFT;
    if (unit >= (size_t)1 << (ROOT_BITS + LEAF_BITS))
        return NULL;
    for (size_t next = unit + 1; next-- > 0;) {
        struct leaf *leaf = ATOMIC_LOAD_ACQUIRE(&root[next >> LEAF_BITS]);
        if (!leaf) {
            next &= ~(((size_t)1 << LEAF_BITS) - 1);
            continue;
        }
        struct region *region = ATOMIC_LOAD_ACQUIRE(&leaf->region[next & ((1 << LEAF_BITS) - 1)]);
        if (region && (const char *)region->base <= (const char *)address)
            return region;
    }
    return NULL;
}
