/* See superslab.h. */
#include "span/superslab.h"

#include "base/assert.h"

static void summarize(struct superslab *superslab)
{
    unsigned longest = 0;
    uint32_t units = 0;
    for (unsigned page = 0; page < SUPERSLAB_PAGES;) {
        unsigned first = bitmap_find(superslab->free, page, SUPERSLAB_PAGES, true);
        unsigned end = bitmap_find(superslab->free, first, SUPERSLAB_PAGES, false);
        if (end - first > longest)
            longest = end - first;
        unsigned unit = (first + UNIT_PAGES - 1) / UNIT_PAGES;
        for (; unit < SUPERSLAB_UNITS && (unit + 1) * UNIT_PAGES <= end; unit++)
            units |= (uint32_t)1 << unit;
        page = end;
    }
    superslab->longest_run = (uint16_t)longest;
    superslab->free_units = units;
}

void superslab_init(struct superslab *superslab, char *base)
{
    superslab->region.kind = REGION_SUPERSLAB;
    superslab->region.base = base;
    bitmap_set_range(superslab->free, 0, SUPERSLAB_PAGES);
    superslab->free_pages = SUPERSLAB_PAGES;
    summarize(superslab);
}

bool superslab_find(
    const struct superslab *superslab, unsigned pages, unsigned alignment, struct run *found)
{
    unsigned best = SUPERSLAB_PAGES + 1;
    if (superslab->longest_run < pages)
        return false;
    for (unsigned page = 0; page < SUPERSLAB_PAGES;) {
        unsigned first = bitmap_find(superslab->free, page, SUPERSLAB_PAGES, true);
        unsigned end = bitmap_find(superslab->free, first, SUPERSLAB_PAGES, false);
        unsigned start = (first + alignment - 1) & ~(alignment - 1);
        if (start + pages <= end && end - first < best) {
            best = end - first;
            *found = (struct run){start, pages};
            if (best == pages)
                break;
        }
        page = end;
    }
    return best <= SUPERSLAB_PAGES;
}

unsigned superslab_take(struct superslab *superslab, struct run run)
{
    unsigned dirty = bitmap_count_range(superslab->dirty, run.first, run.pages);
    bitmap_clear_range(superslab->free, run.first, run.pages);
    superslab->free_pages -= (uint16_t)run.pages;
    superslab->dirty_free_pages -= (uint16_t)dirty;
    summarize(superslab);
    return dirty;
}

void superslab_put(struct superslab *superslab, struct run run, unsigned dirty_pages)
{
    ASSERT(bitmap_count_range(superslab->free, run.first, run.pages) == 0);
    if (dirty_pages)
        bitmap_set_range(superslab->dirty, run.first, dirty_pages);
    bitmap_set_range(superslab->free, run.first, run.pages);
    superslab->free_pages += (uint16_t)run.pages;
    superslab->dirty_free_pages +=
        (uint16_t)bitmap_count_range(superslab->dirty, run.first, run.pages);
    summarize(superslab);
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

void superslab_check(const struct superslab *superslab)
{
    ASSERT(superslab->free_pages == bitmap_count_range(superslab->free, 0, SUPERSLAB_PAGES));
    unsigned dirty_free = 0;
    for (unsigned w = 0; w < SUPERSLAB_WORDS; w++)
        dirty_free += bits_count(superslab->free[w] & superslab->dirty[w]);
    ASSERT(superslab->dirty_free_pages == dirty_free);
    struct superslab copy = *superslab;
    summarize(&copy);
    ASSERT(copy.longest_run == superslab->longest_run);
    ASSERT(copy.free_units == superslab->free_units);
    for (unsigned page = 0; page < SUPERSLAB_PAGES; page++) {
        unsigned pages = superslab->span_pages[page];
        (void)pages; /* only asserted on */
        ASSERT(page + pages <= SUPERSLAB_PAGES);
        ASSERT(!pages || bitmap_count_range(superslab->free, page, pages) == 0);
        ASSERT(!pages || superslab_span_start(superslab, page + pages - 1) == page);
    }
}
