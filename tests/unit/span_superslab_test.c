/* span/superslab: random steps against a model of one byte a page, the walker after every step. */
#include "unit.h"

#include "map/metadata.h"
#include "span/superslab.h"

enum { STEPS = 20000 };

struct model {
    bool free[SUPERSLAB_PAGES];
    bool dirty[SUPERSLAB_PAGES];
    uint16_t owner_pages[SUPERSLAB_PAGES]; /* length of the run that was taken at this page */
    bool is_span[SUPERSLAB_PAGES];         /* the run at this page is a span */
};

static struct superslab superslab;
static struct model model;
static char *const base = (char *)((uintptr_t)0x123400000000u);

static void reset(void)
{
    memset(&superslab, 0, sizeof superslab);
    memset(&model, 0, sizeof model);
    memset(model.free, true, sizeof model.free);
    superslab_init(&superslab, base);
}

static unsigned free_run_length(unsigned page)
{
    unsigned end = page;
    while (end < SUPERSLAB_PAGES && model.free[end])
        end++;
    return end - page;
}

static void compare(void)
{
    unsigned free = 0, dirty = 0, longest = 0;
    uint32_t units = ~(uint32_t)0;
    superslab_check(&superslab);
    for (unsigned page = 0; page < SUPERSLAB_PAGES; page++) {
        CHECK(bitmap_test(superslab.free, page) == model.free[page]);
        CHECK(bitmap_test(superslab.dirty, page) == model.dirty[page]);
        free += model.free[page];
        dirty += model.free[page] && model.dirty[page];
        if (!model.free[page])
            units &= ~((uint32_t)1 << page / UNIT_PAGES);
        else if (page == 0 || !model.free[page - 1])
            longest = (unsigned)size_max(longest, free_run_length(page));
    }
    CHECK(superslab.free_pages == free);
    CHECK(superslab.dirty_free_pages == dirty);
    CHECK(superslab.longest_run >= longest);
    CHECK(superslab.free_units == units);
}

/* The lowest aligned free pages in a row. */
static bool naive_find(unsigned pages, unsigned alignment, struct run *found)
{
    for (unsigned start = 0; start < SUPERSLAB_PAGES; start += alignment) {
        if (free_run_length(start) >= pages) {
            *found = (struct run){start, pages};
            return true;
        }
    }
    return false;
}

static void compare_units(unsigned units)
{
    struct run expected, found;
    bool exists = naive_find(units * UNIT_PAGES, units * UNIT_PAGES, &expected);
    CHECK(superslab_find_units(&superslab, units, &found) == exists);
    CHECK(!exists || (found.first == expected.first && found.pages == expected.pages));
}

/* The largest group: no larger one is free, and one of its length is. */
static void compare_group(void)
{
    struct run found;
    unsigned expected = 0;
    for (unsigned units = 1; units <= SUPERSLAB_UNITS; units *= 2)
        expected += naive_find(units * UNIT_PAGES, units * UNIT_PAGES, &found);
    CHECK(superslab_group(&superslab) == expected);
}

static void take(struct run run, bool span)
{
    unsigned dirty = 0;
    for (unsigned page = run.first; page < run.first + run.pages; page++) {
        CHECK(model.free[page]);
        dirty += model.dirty[page];
        model.free[page] = false;
    }
    CHECK(superslab_take(&superslab, run) == dirty);
    model.owner_pages[run.first] = (uint16_t)run.pages;
    model.is_span[run.first] = span;
    if (span)
        superslab.span_pages[run.first] = (uint16_t)run.pages;
}

static void find_and_take(uint64_t *random)
{
    unsigned pages = 1 + unit_below(random, 1u << unit_below(random, 10));
    unsigned alignment = 1u << unit_below(random, 10);
    if (unit_below(random, 2))
        alignment = 1;
    pages = (unsigned)size_min(pages, SUPERSLAB_PAGES);
    struct run expected = {0, 0}, found = {0, 0};
    for (unsigned units = 1; units <= 4; units *= 2)
        compare_units(units);
    compare_group();
    bool exists = naive_find(pages, alignment, &expected);
    CHECK(superslab_find(&superslab, pages, alignment, &found) == exists);
    /* The bound on runs has become exact enough not to search in vain again. */
    CHECK(exists || alignment > 1 || superslab.longest_run < pages);
    if (!exists)
        return;
    CHECK(found.first == expected.first && found.pages == pages);
    take(found, unit_below(random, 2));
}

static void put(struct run run, unsigned dirty_pages)
{
    for (unsigned i = 0; i < run.pages; i++) {
        model.free[run.first + i] = true;
        model.dirty[run.first + i] = model.dirty[run.first + i] || i < dirty_pages;
    }
    model.owner_pages[run.first] = 0;
    superslab.span_pages[run.first] = 0;
    superslab_put(&superslab, run, dirty_pages);
}

static void put_some(uint64_t *random)
{
    unsigned start = unit_below(random, SUPERSLAB_PAGES);
    for (unsigned i = 0; i < SUPERSLAB_PAGES; i++) {
        unsigned page = (start + i) % SUPERSLAB_PAGES;
        unsigned pages = model.owner_pages[page];
        if (!pages)
            continue;
        put((struct run){page, pages}, unit_below(random, pages + 1));
        return;
    }
}

/* What the page heap does to purge: takes a dirty run, cleans it, puts it back untouched. */
static void purge_some(uint64_t *random)
{
    unsigned from = unit_below(random, SUPERSLAB_PAGES), expected = from;
    struct run run;
    while (expected < SUPERSLAB_PAGES && !(model.free[expected] && model.dirty[expected]))
        expected++;
    CHECK(superslab_next_dirty(&superslab, from, &run) == (expected < SUPERSLAB_PAGES));
    if (expected == SUPERSLAB_PAGES)
        return;
    unsigned end = expected;
    while (end < SUPERSLAB_PAGES && model.free[end] && model.dirty[end])
        end++;
    CHECK(run.first == expected && run.pages == end - expected);
    take(run, false);
    bitmap_clear_range(superslab.dirty, run.first, run.pages);
    memset(&model.dirty[run.first], false, run.pages * sizeof model.dirty[0]);
    put(run, 0);
}

static void compare_spans(void)
{
    unsigned start = SUPERSLAB_PAGES, end = 0;
    for (unsigned page = 0; page < SUPERSLAB_PAGES; page++) {
        if (model.owner_pages[page] && model.is_span[page]) {
            start = page;
            end = page + model.owner_pages[page];
        }
        unsigned expected = page < end ? start : SUPERSLAB_PAGES;
        CHECK(superslab_span_start(&superslab, page) == expected);
    }
}

static void random_steps_agree_with_the_model(void **state)
{
    (void)state;
    uint64_t random = 21;
    reset();
    compare();
    for (int step = 0; step < STEPS; step++) {
        unsigned choice = unit_below(&random, 10);
        /* Fills for a while, then empties. */
        unsigned filling = step / 500 % 2 ? 6 : 3;
        if (choice < filling)
            find_and_take(&random);
        else if (choice < 9)
            put_some(&random);
        else
            purge_some(&random);
        compare();
        if (step % 16 == 0)
            compare_spans();
    }
}

static void a_fresh_superslab_is_one_clean_run(void **state)
{
    (void)state;
    struct run run;
    reset();
    assert_int_equal(superslab.region.kind, REGION_SUPERSLAB);
    assert_ptr_equal(superslab.region.base, base);
    assert_int_equal(superslab.longest_run, SUPERSLAB_PAGES);
    assert_int_equal(superslab.free_units, UINT32_MAX);
    assert_false(superslab_next_dirty(&superslab, 0, &run));
    assert_true(superslab_find(&superslab, SUPERSLAB_PAGES, SUPERSLAB_PAGES, &run));
    assert_int_equal(run.first, 0);
    take(run, true);
    compare();
    assert_false(superslab_find(&superslab, 1, 1, &run));
    assert_int_equal(superslab_span_start(&superslab, SUPERSLAB_PAGES - 1), 0);
}

static void pages_and_addresses_convert(void **state)
{
    (void)state;
    reset();
    for (unsigned page = 0; page < SUPERSLAB_PAGES; page++) {
        char *address = superslab_address(&superslab, page);
        assert_ptr_equal(address, base + page * PAGE_SIZE);
        assert_int_equal(superslab_page_of(address), page);
        assert_int_equal(superslab_page_of(address + PAGE_SIZE - 1), page);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fresh_superslab_is_one_clean_run),
        cmocka_unit_test(pages_and_addresses_convert),
        cmocka_unit_test(random_steps_agree_with_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
