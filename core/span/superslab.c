/* See superslab.h. */
#include "span/superslab.h"

#include "base/assert.h"
#include "base/atomic.h"

/* The units that the run touches, a bit each. */
static uint32_t units_of(struct run run)
{
    unsigned first = run.first / UNIT_PAGES, last = (run.first + run.pages - 1) / UNIT_PAGES;
    return (uint32_t)bitmap_word_mask(0, first, last - first + 1);
}

/* Of these units, those whose pages are all free. */
static uint32_t free_units(const struct superslab *superslab, uint32_t units)
{
    uint32_t result = 0;
    for (; units; units &= units - 1) {
        unsigned page = bits_lowest(units) * UNIT_PAGES;
        if ((uint16_t)(superslab->free[page / 64] >> page % 64) == UINT16_MAX)
            result |= units & -units;
    }
    return result;
}

_Static_assert(UNIT_PAGES == 16, "free_units reads the bits of a unit as a 16-bit integer");

void superslab_init(struct superslab *superslab, char *base)
{
    superslab->region.kind = REGION_SUPERSLAB;
    superslab->region.base = base;
    bitmap_set_range(superslab->free, 0, SUPERSLAB_PAGES);
    superslab->free_pages = SUPERSLAB_PAGES;
    superslab->longest_run = SUPERSLAB_PAGES;
    superslab->free_units = UINT32_MAX;
}

bool superslab_find(
    struct superslab *superslab, unsigned pages, unsigned alignment, struct run *found)
{
    const uint64_t *free = superslab->free;
    unsigned longest = 0, first;
    if (superslab->longest_run < pages)
        return false;
    for (unsigned page = 0;; page++) {
        first = bitmap_find(free, page, SUPERSLAB_PAGES, true);
        unsigned start = (first + alignment - 1) & ~(alignment - 1);
        if (start + pages > SUPERSLAB_PAGES)
            break;
        /* Below `page`, which is not free, no run can begin that is long enough. */
        page = bitmap_find(free, start, start + pages, false);
        if (page == start + pages) {
            *found = (struct run){start, pages};
            return true;
        }
        if (longest < page - start)
            longest = page - start;
    }
    if (alignment == 1)
        superslab->longest_run = (uint16_t)size_max(longest, SUPERSLAB_PAGES - first);
    return false;
}

bool superslab_find_units(const struct superslab *superslab, unsigned units, struct run *found)
{
    uint32_t free = superslab->free_units;
    for (unsigned n = 1; n < units; n *= 2)
        free &= free >> n;
    free &= UINT32_MAX / (((uint32_t)1 << units) - 1); /* every `units`th bit */
    if (!free)
        return false;
    *found = (struct run){bits_lowest(free) * UNIT_PAGES, units * UNIT_PAGES};
    return true;
}

unsigned superslab_group(const struct superslab *superslab)
{
    static const uint32_t starts[SUPERSLAB_GROUPS] = {
        0x55555555, 0x11111111, 0x01010101, 0x00010001, 0x00000001};
    uint64_t free = superslab->free_units;
    unsigned group = 0;
    for (; free; group++)
        free &= (free >> (1u << group)) & starts[group];
    return group;
}

unsigned superslab_take(struct superslab *superslab, struct run run)
{
    unsigned dirty = bitmap_count_range(superslab->dirty, run.first, run.pages);
    bitmap_clear_range(superslab->free, run.first, run.pages);
    superslab->free_pages -= (uint16_t)run.pages;
    superslab->dirty_free_pages -= (uint16_t)dirty;
    superslab->free_units &= ~units_of(run);
    return dirty;
}

void superslab_put(struct superslab *superslab, struct run run, unsigned dirty_pages)
{
    ASSERT(bitmap_count_range(superslab->free, run.first, run.pages) == 0);
    if (dirty_pages)
        bitmap_set_range(superslab->dirty, run.first, dirty_pages);
    KEEP_STORE_ORDER();
    bitmap_set_range(superslab->free, run.first, run.pages);
    superslab->free_pages += (uint16_t)run.pages;
    superslab->dirty_free_pages +=
        (uint16_t)bitmap_count_range(superslab->dirty, run.first, run.pages);
    unsigned first = bitmap_run_start(superslab->free, run.first, true);
    unsigned end = bitmap_find(superslab->free, run.first + run.pages, SUPERSLAB_PAGES, false);
    if (end - first > superslab->longest_run)
        superslab->longest_run = (uint16_t)(end - first);
    superslab->free_units |= free_units(superslab, units_of(run));
}

bool superslab_next_dirty(const struct superslab *superslab, unsigned page, struct run *found)
{
    for (unsigned w = page / 64; w < SUPERSLAB_WORDS; w++) {
        uint64_t word = superslab->free[w] & superslab->dirty[w];
        if (w == page / 64)
            word &= ~(uint64_t)0 << (page % 64);
        if (!word)
            continue;
        unsigned first = w * 64 + bits_lowest(word);
        unsigned end = first;
        while (end < SUPERSLAB_PAGES && bitmap_test(superslab->free, end) &&
               bitmap_test(superslab->dirty, end))
            end++;
        *found = (struct run){first, end - first};
        return true;
    }
    return false;
}

unsigned superslab_span_start(const struct superslab *superslab, unsigned page)
{
    for (unsigned start = page + 1; start-- > 0;) {
        unsigned pages = superslab->span_pages[start];
        if (pages)
            return page < start + pages ? start : SUPERSLAB_PAGES;
    }
    return SUPERSLAB_PAGES;
}

static unsigned dirty_free_pages(const struct superslab *superslab)
{
    unsigned pages = 0;
    for (unsigned w = 0; w < SUPERSLAB_WORDS; w++)
        pages += bits_count(superslab->free[w] & superslab->dirty[w]);
    return pages;
}

void superslab_repair(struct superslab *superslab)
{
    superslab->free_pages = (uint16_t)bitmap_count_range(superslab->free, 0, SUPERSLAB_PAGES);
    superslab->dirty_free_pages = (uint16_t)dirty_free_pages(superslab);
    superslab->free_units = free_units(superslab, UINT32_MAX);
    superslab->longest_run = superslab->free_pages;
}

void superslab_check(const struct superslab *superslab)
{
    ASSERT(superslab->free_pages == bitmap_count_range(superslab->free, 0, SUPERSLAB_PAGES));
    ASSERT(superslab->dirty_free_pages == dirty_free_pages(superslab));
    for (unsigned page = 0, end; page < SUPERSLAB_PAGES; page = end + 1) {
        end = bitmap_find(superslab->free, page, SUPERSLAB_PAGES, false);
        ASSERT(end - page <= superslab->longest_run);
    }
    ASSERT(superslab->free_units == free_units(superslab, UINT32_MAX));
    for (unsigned page = 0; page < SUPERSLAB_PAGES; page++) {
        unsigned pages = superslab->span_pages[page];
        (void)pages; /* only asserted on */
        ASSERT(page + pages <= SUPERSLAB_PAGES);
        ASSERT(!pages || bitmap_count_range(superslab->free, page, pages) == 0);
        ASSERT(!pages || superslab_span_start(superslab, page + pages - 1) == page);
    }
}
