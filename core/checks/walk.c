/* See walk.h. */
#include "checks/walk.h"

#include "base/assert.h"
#include "checks/checks.h"
#include "hardened.h"
#include "map/metadata.h"
#include "map/page_map.h"
#include "scope/scope.h"
#include "slab/shard.h"
#include "span/big_cache.h"
#include "span/page_heap.h"
#include "thread/registry.h"

void walk_shared(void)
{
    metadata_check();
    page_heap_check();
    transfer_check_all();
    heap_check_pool();
}

/* The class map's entry for the unit, whether it is the newest map or not. */
static unsigned entry_of(const struct class_map *map, const char *unit)
{
    size_t index = ((uintptr_t)unit - map->base) >> UNIT_SHIFT;
    return map->classes && index < map->limit ? map->classes[index] : CLASS_NONE;
}

/* Units are free or a slab's, and no class map contradicts the slab. */
static void check_units(const struct superslab *superslab)
{
    for (unsigned unit = 0; unit < SUPERSLAB_UNITS; unit++) {
        const struct slab *slab = superslab->slab_of_unit[unit];
        const char *base = superslab_address(superslab, unit);
        unsigned size_class = slab ? slab->size_class : CLASS_NONE;
        unsigned window = entry_of(&class_map, base), wide = entry_of(&wide_class_map, base);
        ASSERT(window == CLASS_NONE || window == size_class);
        ASSERT(wide == CLASS_NONE || wide == size_class);
        ASSERT(!slab || !(superslab->free_units >> unit & 1));
        ASSERT(!slab || (slab->superslab == superslab && slab->base < base + UNIT_SIZE));
        (void)window, (void)wide, (void)size_class; /* only asserted on */
    }
}

/* Regions do not overlap. */
static void check_regions(void)
{
    const char *end = NULL;
    for (struct region *region = NULL; (region = page_map_next(region)) != NULL;) {
        bool big = region->kind == REGION_BIG;
        if (region->kind == REGION_SCOPE)
            continue;
        ASSERT(region->base >= end);
        end = region->base + (big ? ((const struct big *)region)->mapped : REGION_SIZE);
        if (!big)
            check_units((const struct superslab *)region);
    }
}

void walk_all(void)
{
    walk_shared();
    bin_check_all();
    big_cache_check();
    page_map_check();
    check_regions();
    for (struct heap *heap = heap_first(); heap; heap = heap->next)
        heap_check(heap);
    if (SCOPES)
        scope_check_all();
    hardened_check();
}
