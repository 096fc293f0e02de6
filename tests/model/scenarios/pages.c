/* The page heap and spans: taking, putting, purging, mapping and unmapping at the same time; and
 * the memory of records. */
#include <string.h>

#include "engine/model.h"
#include "map/metadata.h"
#include "span/page_heap.h"
#include "span/span.h"

static void *spans[4];

/* The block is this thread's alone: a second owner is a data race. */
static void use(void *block, size_t size)
{
    CHECK(block);
    *(volatile char *)block = 1;
    *((volatile char *)block + size - 1) = 1;
}

static void *take_span(size_t pages)
{
    void *block = span_alloc(pages * PAGE_SIZE, 1, false);
    use(block, pages * PAGE_SIZE);
    return block;
}

static void give_span(void *block, size_t pages)
{
    use(block, pages * PAGE_SIZE);
    span_free((struct superslab *)page_map_lookup(block), block, "free");
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

static void two_spans(void)
{
    CHECK(page_heap_init());
    spans[0] = take_span(24);
    spans[1] = take_span(24);
    give_span(spans[0], 24);
}

static void take_20(void)
{
    spans[2] = take_span(20);
}

static void give_1(void)
{
    give_span(spans[1], 24);
}

SCENARIO(pages_purge) = {
    .name = "pages_purge",
    .about = "a span is taken and one is freed while free pages are purged",
    .prepare = two_spans,
    .thread = {take_20, give_1, purge_all},
    .finish = consistent};

SCENARIO(pages_purge_twice) = {
    .name = "pages_purge_twice",
    .about = "two threads purge while a third takes pages",
    .prepare = two_spans,
    .thread = {take_20, purge_all, purge_all},
    .finish = consistent};

static void grow_1(void)
{
    struct superslab *superslab = (struct superslab *)page_map_lookup(spans[1]);
    bool grown = span_resize(superslab, spans[1], 30 * PAGE_SIZE);
    use(spans[1], (grown ? 30 : 24) * PAGE_SIZE);
}

static void take_16(void)
{
    spans[3] = take_span(16);
}

SCENARIO(pages_resize) = {
    .name = "pages_resize",
    .about = "a span grows into free pages that others want",
    .prepare = two_spans,
    .thread = {grow_1, take_20, take_16},
    .finish = consistent};

static void count_pages(void)
{
    struct page_heap_stats stats = page_heap_stats();
    CHECK(stats.superslabs == 1);
    CHECK(
        stats.used_pages == 24 || stats.used_pages == 44 || stats.used_pages == 20 ||
        stats.used_pages == 0);
    CHECK(page_heap_unused_pages(IDLE_SINCE_TICK) <= SUPERSLAB_PAGES);
}

SCENARIO(pages_count) = {
    .name = "pages_count",
    .about = "figures while pages are taken and put",
    .prepare = two_spans,
    .thread = {take_20, give_1, count_pages},
    .finish = consistent};

/* ---- Several superslabs -----------------------------------------------------------------------
 */

static void two_superslabs(void)
{
    CHECK(page_heap_init());
    spans[0] = take_span(500);
    spans[1] = take_span(500);
    give_span(spans[1], 500);
}

static void take_400(void)
{
    spans[2] = take_span(400);
}

SCENARIO(pages_unmap) = {
    .name = "pages_unmap",
    .about = "a free superslab is unmapped while somebody wants it",
    .prepare = two_superslabs,
    .thread = {purge_all, take_400, purge_all},
    .finish = consistent};

static void one_full_superslab(void)
{
    CHECK(page_heap_init());
    spans[0] = take_span(500);
}

SCENARIO(pages_grow) = {
    .name = "pages_grow",
    .about = "two threads find no room and map superslabs",
    .prepare = one_full_superslab,
    .thread = {take_400, take_16},
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
    for (size_t used = 0; used < 64 * KIB; used += RECORD)
        CHECK(metadata_alloc(RECORD));
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
