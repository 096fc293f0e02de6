/* The page heap: taking, putting, purging, mapping and unmapping at the same time; and the memory
 * of records. */
#include <string.h>

#include "checks/checks.h"
#include "engine/model.h"
#include "map/metadata.h"
#include "span/page_heap.h"

static struct unit_run runs[4];

/* The units are this thread's alone: a second owner is a data race. */
static void use(void *start, size_t size)
{
    CHECK(start);
    *(volatile char *)start = 1;
    *((volatile char *)start + size - 1) = 1;
}

static void use_run(struct unit_run run)
{
    use(superslab_address(run.superslab, run.run.first), run.run.units * UNIT_SIZE);
}

static struct unit_run take_run(unsigned units, unsigned alignment)
{
    struct unit_run taken;
    CHECK(page_heap_take(0, units, alignment, true, &taken));
    use_run(taken);
    return taken;
}

static void give_run(struct unit_run run)
{
    use_run(run);
    page_heap_put(run.superslab, run.run, run.run.units * UNIT_PAGES);
}

static void purge_all(void)
{
    page_heap_purge(SIZE_MAX);
}

static void consistent(void)
{
    page_heap_check();
    for (unsigned i = 0; i < 4; i++)
        CHECK(model_region_is_mapped(i) == (page_map_lookup(model_region(i)) != NULL));
}

/* ---- One superslab ----------------------------------------------------------------------------
 */

static void two_runs(void)
{
    CHECK(page_heap_init());
    runs[0] = take_run(6, 1);
    runs[1] = take_run(6, 1);
    give_run(runs[0]);
}

static void take_5(void)
{
    runs[2] = take_run(5, 1);
}

static void give_1(void)
{
    give_run(runs[1]);
}

SCENARIO(pages_purge) = {
    .name = "pages_purge",
    .about = "a run is taken and one is put while free pages are purged",
    .prepare = two_runs,
    .thread = {take_5, give_1, purge_all},
    .finish = consistent};

SCENARIO(pages_purge_twice) = {
    .name = "pages_purge_twice",
    .about = "two threads purge while a third takes units",
    .prepare = two_runs,
    .thread = {take_5, purge_all, purge_all},
    .finish = consistent};

static void grow_1(void)
{
    struct run behind = {runs[1].run.first + runs[1].run.units, 2};
    if (page_heap_take_at(runs[1].superslab, behind))
        runs[1].run.units += 2;
    use_run(runs[1]);
}

static void take_aligned(void)
{
    runs[3] = take_run(4, 4);
}

SCENARIO(pages_resize) = {
    .name = "pages_resize",
    .about = "a run grows into free units that others want",
    .prepare = two_runs,
    .thread = {grow_1, take_5, take_aligned},
    .finish = consistent};

static void count_pages(void)
{
    struct page_heap_stats stats = page_heap_stats();
    CHECK(stats.superslabs == 1);
    CHECK(
        stats.used_pages == 6 * UNIT_PAGES || stats.used_pages == 11 * UNIT_PAGES ||
        stats.used_pages == 5 * UNIT_PAGES || stats.used_pages == 0);
    CHECK(page_heap_unused_pages(IDLE_SINCE_TICK) <= SUPERSLAB_PAGES);
}

SCENARIO(pages_count) = {
    .name = "pages_count",
    .about = "figures while units are taken and put",
    .prepare = two_runs,
    .thread = {take_5, give_1, count_pages},
    .finish = consistent};

/* ---- Several superslabs -----------------------------------------------------------------------
 */

static void two_superslabs(void)
{
    CHECK(page_heap_init());
    runs[0] = take_run(30, 1);
    runs[1] = take_run(30, 1);
    give_run(runs[1]);
}

static void take_25(void)
{
    runs[2] = take_run(25, 1);
}

SCENARIO(pages_unmap) = {
    .name = "pages_unmap",
    .about = "a free superslab is unmapped while somebody wants it",
    .prepare = two_superslabs,
    .thread = {purge_all, take_25, purge_all},
    .finish = consistent};

static void one_full_superslab(void)
{
    CHECK(page_heap_init());
    runs[0] = take_run(30, 1);
}

SCENARIO(pages_grow) = {
    .name = "pages_grow",
    .about = "two threads find no room and map superslabs",
    .prepare = one_full_superslab,
    .thread = {take_25, take_aligned},
    .finish = consistent};

/* ---- Records ----------------------------------------------------------------------------------
 */

enum { RECORD = 4096 };

static void use_record(void)
{
    char *record = metadata_alloc(RECORD);
    use(record, RECORD);
    metadata_free(record, RECORD);
}

SCENARIO(pages_records) = {
    .name = "pages_records",
    .about = "three threads take and give back records",
    .thread = {use_record, use_record, use_record}};

/* The chunk that is part of the library has no room left. */
static void use_up_chunk(void)
{
    do
        CHECK(metadata_alloc(RECORD));
    while (metadata.end - metadata.cursor >= RECORD);
}

static void keep_record(void)
{
    use(metadata_alloc(RECORD), RECORD);
}

SCENARIO(pages_chunks) = {
    .name = "pages_chunks",
    .about = "three threads need a record, and memory has to be mapped",
    .prepare = use_up_chunk,
    .thread = {keep_record, keep_record, use_record}};
