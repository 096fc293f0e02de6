/* Publication: the page map, and records that are found by it. Legal frees find what they look for
 * by what their program has synchronised; these look up what nobody gave them. */
#include "checks/checks.h"
#include "engine/model.h"
#include "map/page_map.h"
#include "slab/shard.h"
#include "span/page_heap.h"

static struct region regions[3];

/* Looks at a region that somebody else may just be registering. */
static struct region *look(unsigned index)
{
    struct region *found = page_map_lookup(model_region(index));
    if (found) {
        CHECK(found->kind == REGION_BIG);
        CHECK(found->base == model_region(index));
    }
    return found;
}

static void enter(struct region *region, char *base)
{
    *region = (struct region){REGION_BIG, base};
    page_map_register(region);
    CHECK(page_map_lookup(base) == region);
}

static void publish(unsigned index)
{
    CHECK(page_map_prepare(model_region(index)));
    enter(&regions[index], model_region(index));
}

static void publish_0(void)
{
    publish(0);
    look(1);
}

static void publish_1(void)
{
    publish(1);
}

static void look_0(void)
{
    look(0);
}

static void both_found(void)
{
    CHECK(look(0) == &regions[0] && look(1) == &regions[1]);
}

SCENARIO(maps_install) = {
    .name = "maps_install",
    .about = "two threads make the same leaf of the page map, a third looks",
    .thread = {publish_0, publish_1, look_0},
    .finish = both_found};

/* ---- Removing ---------------------------------------------------------------------------------
 */

static void publish_all(void)
{
    for (unsigned i = 0; i < 2; i++)
        publish(i);
}

static void unpublish_0(void)
{
    page_map_unregister(&regions[0]);
}

static void find_nearest(void)
{
    struct region *found = page_map_nearest(model_region(2) + 100);
    CHECK(found == &regions[1] || found == &regions[2]);
    CHECK(found->base <= model_region(2));
}

static void publish_2(void)
{
    publish(2);
}

SCENARIO(maps_nearest) = {
    .name = "maps_nearest",
    .about = "a search of the page map while entries come and go",
    .prepare = publish_all,
    .thread = {unpublish_0, publish_2, find_nearest}};

/* ---- New leaves -------------------------------------------------------------------------------
 */

/* The last region of the leaf below. That leaf is the library's own: the next ones are mapped. */
static struct region region_below;

static char *below(void)
{
    return model_region(0) - REGION_SIZE;
}

static void publish_below(void)
{
    CHECK(page_map_prepare(below()));
    enter(&region_below, below());
}

/* A search before anything is there: it meets the leaf first. */
static void find_in_new_leaf(void)
{
    struct region *found = page_map_nearest(model_region(1) + 100);
    CHECK(found == &region_below || found == &regions[0]);
    CHECK(found->base <= model_region(0));
}

SCENARIO(maps_nearest_in_new_leaf) = {
    .name = "maps_nearest_in_new_leaf",
    .about = "a search of the page map while a leaf is made",
    .prepare = publish_below,
    .thread = {publish_0, find_in_new_leaf}};

static void walk(void)
{
    const struct region *region = page_map_next(NULL);
    CHECK(region == &region_below);
    region = page_map_next(region);
    CHECK(!region || (region->kind == REGION_BIG && region->base == model_region(0)));
}

SCENARIO(maps_next) = {
    .name = "maps_next",
    .about = "a walk over all regions while a leaf is made",
    .prepare = publish_below,
    .thread = {publish_0, walk}};

static void publish_by_spare(struct region *region, char *base)
{
    struct page_map_spare spare;
    CHECK(page_map_take_spare(&spare));
    page_map_prepare_by_spare(&spare, base);
    enter(region, base);
}

static void spare_0(void)
{
    publish_by_spare(&regions[0], model_region(0));
}

static void spare_1_and_below(void)
{
    publish_by_spare(&regions[1], model_region(1));
    publish_by_spare(&region_below, below());
}

static void all_found(void)
{
    both_found();
    CHECK(page_map_lookup(below()) == &region_below);
}

SCENARIO(maps_spare) = {
    .name = "maps_spare",
    .about = "two threads bring the same leaf, and one then needs another: the spare, maybe",
    .thread = {spare_0, spare_1_and_below},
    .finish = all_found};

/* ---- Slabs ------------------------------------------------------------------------------------
 */

enum { BLOCK_SIZE = 8192 };

static void map_first(void)
{
    CHECK(page_heap_init());
    shard_init(1);
}

static void make_slab(void)
{
    void *block;
    CHECK(bin_refill(0, size_class_of(BLOCK_SIZE), &block, 1, 1, REFILL_MAP) == 1);
}

/* What free asks of a pointer before it believes it. */
static void look_for_slab(void)
{
    struct slab *slab = slab_lookup(model_region(0) + BLOCK_SIZE);
    if (slab)
        CHECK(slab_index(slab, model_region(0) + BLOCK_SIZE, "free") == 1);
}

SCENARIO(maps_slab) = {
    .name = "maps_slab",
    .about = "a slab is made while another thread looks into its unit",
    .prepare = map_first,
    .thread = {make_slab, look_for_slab, look_for_slab}};

static void map_another(void)
{
    struct unit_run taken;
    CHECK(page_heap_take(0, SUPERSLAB_UNITS, 1, true, &taken));
}

static void look_for_superslab(void)
{
    struct slab *slab = slab_lookup(model_region(1));
    CHECK(!slab);
    CHECK(!page_map_nearest(model_region(0) - 1));
}

static void make_first_slab(void)
{
    map_first();
    make_slab();
}

SCENARIO(maps_superslab) = {
    .name = "maps_superslab",
    .about = "a superslab is mapped while another thread looks for it",
    .prepare = make_first_slab,
    .thread = {map_another, look_for_superslab, look_for_superslab}};

static void *block;

static void make_large_block(void)
{
    map_first();
    CHECK(bin_refill(0, size_class_of(3 * UNIT_SIZE), &block, 1, 2, REFILL_MAP) == 1);
}

static void grow_large_block(void)
{
    bool grown = bin_resize(slab_lookup(block), size_class_of(5 * UNIT_SIZE));
    *((volatile char *)block + (grown ? 5 : 3) * UNIT_SIZE - 1) = 1;
    CHECK(bin_resize(slab_lookup(block), size_class_of(2 * UNIT_SIZE)));
}

/* A pointer to the unit behind the block, of which nobody may believe that it is one. */
static void look_behind(void)
{
    const char *behind = (char *)block + 3 * UNIT_SIZE;
    struct slab *slab = slab_lookup(behind);
    CHECK(
        class_map_get(behind) == CLASS_NONE || class_map_get(behind) == size_class_of(BLOCK_SIZE));
    CHECK(!slab || slab->base <= behind);
}

/* No free unit is found to be a slab's. */
static void units_consistent(void)
{
    bin_check_all();
    page_heap_check();
    const struct superslab *superslab = (struct superslab *)page_map_lookup(block);
    for (unsigned unit = 0; unit < SUPERSLAB_UNITS; unit++)
        CHECK(
            !(superslab->free_units >> unit & 1) ||
            !slab_lookup(superslab_address(superslab, unit)));
}

SCENARIO(maps_resize) = {
    .name = "maps_resize",
    .about = "a block grows and shrinks while others look at the units behind it, and take them",
    .prepare = make_large_block,
    .thread = {grow_large_block, look_behind, make_slab},
    .finish = units_consistent};
