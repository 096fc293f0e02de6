/* From any address to what the allocator keeps there: the two maps.
 *
 * The page map is complete and serves the slow paths: one entry per 2 MiB of the user address
 * space, in two levels, pointing at the region (superslab or big block) that starts there: no
 * region is shorter than 2 MiB, so that there is one at most.
 *
 * The class map is the hit path of free: one byte per 64 KiB unit, the size class of the slab that
 * covers it, CLASS_NONE (0) elsewhere. It covers a window of the address space around the first
 * superslab, 1 TiB wide unless address space is limited. Superslabs are asked for inside the
 * window; one that lies outside works all the same, by the slow path.
 *
 *     address ->  (address - base) >> 16  < limit ?   class_map.classes[...]     one load
 *     address ->  root[address >> 34] -> leaf[(address >> 21) & 8191]            two loads
 *
 * Both tell foreign pointers from ours: no entry, no region.
 */
#ifndef MAP_PAGE_MAP_H
#define MAP_PAGE_MAP_H

#include "base/atomic.h"
#include "base/macros.h"
#include "map/size_class.h"

/* The user half of x86-64 with 4-level tables and of AArch64. */
#define ADDRESS_BITS 48

/* The unit of address space: superslabs are this large and aligned to it, big blocks at least as
 * large. */
#define REGION_SHIFT 21
#define REGION_SIZE ((size_t)1 << REGION_SHIFT)

enum region_kind { REGION_SUPERSLAB, REGION_BIG };

/* First member of `struct superslab` and `struct big`. */
struct region {
    enum region_kind kind; /* const while registered */
    char *base;            /* const while registered */
};

struct class_map {
    uint8_t *classes; /* const after init; entries atomic relaxed */
    uintptr_t base;   /* const after init: first address of the window */
    size_t limit;     /* const after init: entries */
};

extern struct class_map class_map;

/* Places the window around `address` and maps the class map. False when memory is exhausted. */
bool class_map_init(const void *address);

/* Bytes of memory in use by both maps. */
size_t page_map_bytes(void);

/* Class of the slab at `address`, CLASS_NONE if none or outside the window. */
ALWAYS_INLINE unsigned class_map_get(const void *address)
{
    size_t index = ((uintptr_t)address - class_map.base) >> UNIT_SHIFT;
    return index < class_map.limit ? ATOMIC_LOAD_RELAXED(&class_map.classes[index]) : CLASS_NONE;
}

/* Publishes the class of `units` units. The thread that hands out the first block of the slab
 * calls it before; who frees the block got the pointer from there. */
void class_map_set(const void *address, unsigned units, unsigned class);

/* Prepares the part of the class map that a superslab at `address` needs; false: no memory. */
bool class_map_prepare(const void *address);

/* Makes sure that a region at `address` can be registered; false when no memory is left for the
 * map, or when the address lies beyond it. What was registered there before stays valid. */
bool page_map_prepare(const void *address);

/* For a region of which the address is not known before it is too late to fail: take_spare sees to
 * it that prepare_by_spare will succeed; false when no memory is left. */
struct leaf;
struct page_map_spare {
    struct leaf *leaf;
};
bool page_map_take_spare(struct page_map_spare *spare);
void page_map_prepare_by_spare(struct page_map_spare *spare, const void *address);

/* Registers the region at its base, for which page_map_prepare has succeeded once. */
void page_map_register(struct region *region);
void page_map_unregister(const struct region *region);

/* Region that starts in the 2 MiB of `address`, before or behind it; NULL: none of ours. */
struct region *page_map_lookup(const void *address);

/* The region that starts next above another one, or the first of all; NULL: none. */
struct region *page_map_next(const struct region *region);

/* Region that starts at or below `address` and nearest to it; NULL: none. A search, for messages.
 */
struct region *page_map_nearest(const void *address);

#endif
