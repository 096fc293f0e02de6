/* The two maps, from any address to its size class and to its region.
 *
 * The page map is complete and serves the slow paths, and the states of long blocks: one entry per
 * 2 MiB of the user address space, in two levels, pointing at the region (superslab or big block)
 * that starts there. At most one does, since no region is shorter than 2 MiB.
 *
 * The class map is the hit path of free: one byte per 64 KiB unit, the size class of the slab that
 * covers it, CLASS_NONE (0) elsewhere. It covers a window of the address space around the first
 * superslab. Slabs of long blocks are not in it: such a block has a state (span/superslab.h), to
 * which the page map leads. If a superslab has to lie outside, and address space is not limited, a
 * second map is made, the wide one, for all addresses. Blocks outside of both take the slow path.
 *
 *     address ->  (address - base) >> 16  < limit ?   classes[...]               one load
 *     address ->  root[address >> 34] -> leaf[(address >> 21) & 8191]            two loads
 *
 * Both tell foreign pointers from ours: no entry, no region.
 *
 * Each thread heap reads one class map, and changes over to the wide one with its next slow path.
 * An entry is the class of the slab that lies there, or 0, in either map at any time: a slab is
 * removed from both before its units are used again, but entered only if there is memory for the
 * entry. A thread that frees a block whose slab the map does not know adds it (slab_publish): it
 * owns the block, so the slab cannot go away. So nothing is copied, and no thread waits.
 */
#ifndef MAP_PAGE_MAP_H
#define MAP_PAGE_MAP_H

#include "base/atomic.h"
#include "base/macros.h"
#include "map/size_class.h"

/* The user half of x86-64 with 4-level tables and of AArch64. */
#define ADDRESS_BITS 48

/* An entry of the page map covers this much: superslabs are as large and aligned to it, big blocks
 * at least as large. */
#define REGION_SHIFT 21
#define REGION_SIZE ((size_t)1 << REGION_SHIFT)

enum region_kind { REGION_SUPERSLAB, REGION_BIG, REGION_SCOPE };

/* First member of `struct superslab`, `struct big` and, in scope/, of `struct span`. */
struct region {
    enum region_kind kind; /* const while registered */
    char *base;            /* const while registered */
};

enum { LEAF_BITS = 13, ROOT_BITS = ADDRESS_BITS - REGION_SHIFT - LEAF_BITS };

/* An entry is 0 or the address of a region, plus one for a superslab, which the hit paths of long
 * blocks look for. */
enum { ENTRY_SUPERSLAB = 1 };

struct leaf {
    uintptr_t entry[1 << LEAF_BITS]; /* atomic: release on store pairs with acquire on load */
};

struct class_map {
    uint8_t *classes; /* const once set; entries atomic relaxed */
    uintptr_t base;   /* const after init: first address */
    size_t limit;     /* const after init: entries */
    uint64_t *ready;  /* const; words atomic relaxed: bit per piece that was made writable */
};

/* The wide map starts so far below address 0 that no index into the window is that of a program's
 * address in the wide map: a signal handler may change the heap over while the thread is about to
 * look. Its `classes` is NULL until it is made; atomic, any thread: release when it is set pairs
 * with acquire in class_map_newest. */
extern struct class_map class_map, wide_class_map;

/* Places the window around `address` and maps the class map. False: no memory. */
bool class_map_init(const void *address);

/* Bytes of memory in use by both maps. */
size_t page_map_bytes(void);

/* The map that heaps should read: the wide one once there is one. */
ALWAYS_INLINE const struct class_map *class_map_newest(void)
{
    return ATOMIC_LOAD_ACQUIRE(&wide_class_map.classes) ? &wide_class_map : &class_map;
}

/* The mark: the first bytes of a short block that was freed, the lower half of the address of a
 * map. It is a secret of the process and reveals no address: maps lie at random ones, whose lower
 * half tells neither the upper one nor the place of anything else (os_reserve_scattered). */
typedef uint32_t mark __attribute__((may_alias));

ALWAYS_INLINE mark class_map_mark(const uint8_t *classes)
{
    return (mark)(uintptr_t)classes;
}

/* True for the first bytes of a block that was freed. */
ALWAYS_INLINE bool class_map_is_mark(mark first)
{
    const uint8_t *newest = class_map_newest()->classes;
    return class_map.classes &&
           (first == class_map_mark(class_map.classes) || first == class_map_mark(newest));
}

/* Class of the slab at `address` in the newest map; CLASS_NONE: the map has none, as for all slabs
 * of long blocks. */
ALWAYS_INLINE unsigned class_map_get(const void *address)
{
    const struct class_map *map = class_map_newest();
    size_t index = ((uintptr_t)address - map->base) >> UNIT_SHIFT;
    return index < map->limit ? ATOMIC_LOAD_RELAXED(&map->classes[index]) : CLASS_NONE;
}

/* Enters the class of `units` units in each map, as far as these are prepared. The thread that
 * makes the slab does so before it hands out a block; a thread that frees a block has its pointer
 * from there, and so sees the entry. */
void class_map_set(const void *address, unsigned units, unsigned class);

/* Prepares the part of each class map that a superslab at `address` needs, and makes the wide one
 * if it lies outside of the window; false: no memory. */
bool class_map_prepare(const void *address);

/* Makes sure that a region at `address` can be registered. False: no memory is left for the map, or
 * the address lies beyond it. Regions registered there before stay valid. */
bool page_map_prepare(const void *address);

/* True if that has succeeded for an address in the same 16 GiB. */
bool page_map_is_prepared(const void *address);

/* Reserves untouchable addresses, for whole entries of the map, so that no region begins there; 0:
 * the system refuses. */
uintptr_t page_map_reserve(size_t bytes);

/* For a region whose address is known only when it is too late to fail: after take_spare,
 * prepare_by_spare succeeds. False: no memory is left. */
struct page_map_spare {
    struct leaf *leaf;
};
bool page_map_take_spare(struct page_map_spare *spare);
void page_map_prepare_by_spare(struct page_map_spare *spare, const void *address);

/* Registers the region at its base, for which page_map_prepare has succeeded before. */
void page_map_register(struct region *region);
void page_map_unregister(const struct region *region);

/* Atomic: release on install, acquire on load. Hidden, so that it is found before anything is
 * relocated (hardened/copies.c). */
extern struct leaf *page_map_root[1 << ROOT_BITS] __attribute__((visibility("hidden")));

ALWAYS_INLINE uintptr_t page_map_entry(const struct leaf *leaf, const void *address)
{
    size_t number = (uintptr_t)address >> REGION_SHIFT;
    return ATOMIC_LOAD_ACQUIRE(&leaf->entry[number & ((1 << LEAF_BITS) - 1)]);
}

/* The entry for the 2 MiB of `address`, which may be any. */
ALWAYS_INLINE uintptr_t page_map_find(const void *address)
{
    size_t index = (uintptr_t)address >> (REGION_SHIFT + LEAF_BITS);
    if (UNLIKELY(index >= (size_t)1 << ROOT_BITS))
        return 0;
    struct leaf *leaf = ATOMIC_LOAD_ACQUIRE(&page_map_root[index]);
    return LIKELY(leaf != NULL) ? page_map_entry(leaf, address) : 0;
}

/* The region of an entry; NULL: none. */
ALWAYS_INLINE struct region *page_map_region(uintptr_t entry)
{
    return (struct region *)(entry & ~(uintptr_t)ENTRY_SUPERSLAB);
}

/* Region that starts in the 2 MiB of `address`, before or behind it; NULL: none of ours. */
ALWAYS_INLINE struct region *page_map_lookup(const void *address)
{
    return page_map_region(page_map_find(address));
}

/* The superslab of an address that lies in one. */
ALWAYS_INLINE struct region *page_map_superslab_of(const void *address)
{
    size_t index = (uintptr_t)address >> (REGION_SHIFT + LEAF_BITS);
    struct leaf *leaf = ATOMIC_LOAD_ACQUIRE(&page_map_root[index]);
    return (struct region *)(page_map_entry(leaf, address) - ENTRY_SUPERSLAB);
}

/* The region that starts next above `region`; for NULL, the first of all. NULL: none. */
struct region *page_map_next(const struct region *region);

/* Region that starts at or below `address` and nearest to it; NULL: none. A search, for messages.
 */
struct region *page_map_nearest(const void *address);

#endif
