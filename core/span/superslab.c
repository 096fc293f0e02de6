/* See superslab.h. */
#include "span/superslab.h"

#include "base/assert.h"
#include "base/atomic.h"

static uint32_t mask_of(struct run run)
{
    return (uint32_t)bitmap_word_mask(0, run.first, run.units);
}

void superslab_init(struct superslab *superslab, char *base)
{
    superslab->region.kind = REGION_SUPERSLAB;
    superslab->region.base = base;
    superslab->free_units = UINT32_MAX;
}

/* The units, of these, at which `length` in a row begin. */
static uint32_t starts_of_runs(uint32_t units, unsigned length)
{
    for (unsigned had = 1, more; had < length; had += more) {
        more = (unsigned)size_min(had, length - had);
        units &= units >> more;
    }
    return units;
}

uint32_t superslab_starts(uint32_t free_units, unsigned units, unsigned alignment)
{
    uint32_t every = (uint32_t)(UINT32_MAX / (((uint64_t)1 << alignment) - 1));
    return starts_of_runs(free_units, units) & every;
}

/* Dirty pages of the run, those of four units at a time. */
static unsigned count_dirty(const struct superslab *superslab, struct run run)
{
    unsigned pages = 0, unit = run.first, end = run.first + run.units;
    while (unit < end) {
        uint64_t word = 0;
        do
            word = word << UNIT_PAGES | superslab->dirty[unit++];
        while (unit < end && unit % (64 / UNIT_PAGES));
        pages += bits_count(word);
    }
    return pages;
}

int superslab_find(
    const struct superslab *superslab, unsigned units, unsigned alignment, unsigned first,
    struct run *found)
{
    uint32_t starts = superslab_starts(superslab->free_units, units, alignment);
    uint32_t above = starts & UINT32_MAX << first;
    int most = -1, all = first ? 0 : superslab->dirty_free_pages;
    for (starts = above ? above : starts; starts && most < all; starts &= starts - 1) {
        struct run run = {bits_lowest(starts), units};
        int dirty = (int)count_dirty(superslab, run);
        if (dirty > most) {
            *found = run;
            most = dirty;
        }
    }
    return most;
}

unsigned superslab_longest_run(const struct superslab *superslab)
{
    uint32_t starts = superslab->free_units;
    unsigned length = 0;
    for (; starts; length++)
        starts &= starts >> 1;
    return length;
}

unsigned superslab_take(struct superslab *superslab, struct run run)
{
    uint32_t units = mask_of(run);
    ASSERT((superslab->free_units & units) == units);
    unsigned dirty = count_dirty(superslab, run);
    superslab->free_units &= ~units;
    superslab->dirty_free_pages -= (uint16_t)dirty;
    return dirty;
}

void superslab_put(struct superslab *superslab, struct run run, unsigned dirty_pages)
{
    uint32_t units = mask_of(run);
    ASSERT((superslab->free_units & units) == 0);
    for (unsigned unit = run.first; dirty_pages; unit++) {
        unsigned pages = (unsigned)size_min(dirty_pages, UNIT_PAGES);
        superslab->dirty[unit] |= (uint16_t)bitmap_word_mask(0, 0, pages);
        dirty_pages -= pages;
    }
    KEEP_STORE_ORDER();
    superslab->free_units |= units;
    superslab->dirty_free_pages += (uint16_t)count_dirty(superslab, run);
}

bool superslab_next_dirty(const struct superslab *superslab, unsigned unit, struct run *found)
{
    for (uint32_t free = superslab->free_units; unit < SUPERSLAB_UNITS; unit++) {
        unsigned end = unit;
        while (end < SUPERSLAB_UNITS && free >> end & 1 && superslab->dirty[end])
            end++;
        if (end > unit) {
            *found = (struct run){unit, end - unit};
            return true;
        }
    }
    return false;
}

void superslab_clean(struct superslab *superslab, struct run run)
{
    for (unsigned unit = run.first; unit < run.first + run.units; unit++)
        superslab->dirty[unit] = 0;
}

void superslab_repair(struct superslab *superslab)
{
    unsigned pages = 0;
    for (unsigned unit = 0; unit < SUPERSLAB_UNITS; unit++)
        if (superslab->free_units >> unit & 1)
            pages += bits_count(superslab->dirty[unit]);
    superslab->dirty_free_pages = (uint16_t)pages;
}
