/* span/superslab: random steps against a model of one byte a unit and a page, the walker after
 * every step. */
#include "unit.h"

#include "checks/checks.h"
#include "map/metadata.h"
#include "span/superslab.h"

enum { STEPS = 20000 };

struct model {
    bool free[SUPERSLAB_UNITS];
    bool dirty[SUPERSLAB_PAGES];
    unsigned taken[SUPERSLAB_UNITS]; /* length of the run that was taken at this unit */
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

static unsigned free_run_length(unsigned unit)
{
    unsigned end = unit;
    while (end < SUPERSLAB_UNITS && model.free[end])
        end++;
    return end - unit;
}

static void compare(void)
{
    unsigned dirty = 0, longest = 0;
    superslab_check(&superslab);
    for (unsigned unit = 0; unit < SUPERSLAB_UNITS; unit++) {
        CHECK((superslab.free_units >> unit & 1) == model.free[unit]);
        longest = (unsigned)size_max(longest, free_run_length(unit));
        for (unsigned page = 0; page < UNIT_PAGES; page++) {
            bool expected = model.dirty[unit * UNIT_PAGES + page];
            char *address = superslab_address(&superslab, unit) + page * PAGE_SIZE;
            CHECK(superslab_is_dirty(&superslab, address) == expected);
            CHECK(superslab_is_dirty(&superslab, address + PAGE_SIZE - 1) == expected);
            dirty += model.free[unit] && expected;
        }
    }
    CHECK(superslab.dirty_free_pages == dirty);
    CHECK(superslab_longest_run(&superslab) == longest);
}

static int dirty_pages_of(struct run run)
{
    int dirty = 0;
    for (unsigned page = run.first * UNIT_PAGES; page < (run.first + run.units) * UNIT_PAGES;
         page++)
        dirty += model.dirty[page];
    return dirty;
}

/* Of the aligned free units in a row from there on: the lowest, or the lowest with most dirty
 * pages. Returns these; -1: there are none. */
static int naive_find_from(
    unsigned first, bool lowest, unsigned units, unsigned alignment, struct run *found)
{
    int most = -1;
    for (unsigned start = 0; start < SUPERSLAB_UNITS; start += alignment) {
        struct run run = {start, units};
        if (start >= first && free_run_length(start) >= units &&
            (lowest ? most < 0 : dirty_pages_of(run) > most)) {
            most = dirty_pages_of(run);
            *found = run;
        }
    }
    return most;
}

static int naive_find(unsigned units, unsigned alignment, unsigned first, struct run *found)
{
    int dirty = naive_find_from(first, first != 0, units, alignment, found);
    return dirty < 0 ? naive_find_from(0, first != 0, units, alignment, found) : dirty;
}

static void take(struct run run)
{
    for (unsigned unit = run.first; unit < run.first + run.units; unit++) {
        CHECK(model.free[unit]);
        model.free[unit] = false;
    }
    CHECK((int)superslab_take(&superslab, run) == dirty_pages_of(run));
    model.taken[run.first] = run.units;
}

static void find_and_take(uint64_t *random)
{
    struct run expected = {0, 0}, found = {0, 0};
    for (unsigned units = 1; units <= SUPERSLAB_UNITS; units++) {
        for (unsigned alignment = 1; alignment <= SUPERSLAB_UNITS; alignment *= 2) {
            unsigned first = unit_below(random, 2) ? unit_below(random, SUPERSLAB_UNITS) : 0;
            int dirty = naive_find(units, alignment, first, &expected);
            CHECK(superslab_find(&superslab, units, alignment, first, &found) == dirty);
            CHECK(dirty < 0 || (found.first == expected.first && found.units == units));
        }
    }
    unsigned units = 1 + unit_below(random, 1u << unit_below(random, 6));
    unsigned alignment = unit_below(random, 2) ? 1 : 1u << unit_below(random, 6);
    if (superslab_find(&superslab, units, alignment, 0, &found) >= 0)
        take(found);
}

static void put(struct run run, unsigned dirty_pages)
{
    for (unsigned unit = run.first; unit < run.first + run.units; unit++)
        model.free[unit] = true;
    for (unsigned page = 0; page < dirty_pages; page++)
        model.dirty[run.first * UNIT_PAGES + page] = true;
    model.taken[run.first] = 0;
    superslab_put(&superslab, run, dirty_pages);
}

static void put_some(uint64_t *random)
{
    unsigned start = unit_below(random, SUPERSLAB_UNITS);
    for (unsigned i = 0; i < SUPERSLAB_UNITS; i++) {
        unsigned unit = (start + i) % SUPERSLAB_UNITS, units = model.taken[unit];
        if (!units)
            continue;
        put((struct run){unit, units}, unit_below(random, units * UNIT_PAGES + 1));
        return;
    }
}

static bool has_dirt(unsigned unit)
{
    bool dirt = false;
    for (unsigned page = 0; page < UNIT_PAGES; page++)
        dirt = dirt || model.dirty[unit * UNIT_PAGES + page];
    return dirt && model.free[unit];
}

/* What the page heap does to purge: takes dirty units, cleans them, puts them back untouched. */
static void purge_some(uint64_t *random)
{
    unsigned from = unit_below(random, SUPERSLAB_UNITS), expected = from;
    struct run run;
    while (expected < SUPERSLAB_UNITS && !has_dirt(expected))
        expected++;
    CHECK(superslab_next_dirty(&superslab, from, &run) == (expected < SUPERSLAB_UNITS));
    if (expected == SUPERSLAB_UNITS)
        return;
    unsigned end = expected;
    while (end < SUPERSLAB_UNITS && has_dirt(end))
        end++;
    CHECK(run.first == expected && run.units == end - expected);
    take(run);
    superslab_clean(&superslab, run);
    memset(&model.dirty[run.first * UNIT_PAGES], false, run.units * UNIT_PAGES);
    put(run, 0);
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
    }
}

static void a_fresh_superslab_is_one_clean_run(void **state)
{
    (void)state;
    struct run run;
    reset();
    assert_int_equal(superslab.region.kind, REGION_SUPERSLAB);
    assert_ptr_equal(superslab.region.base, base);
    assert_int_equal(superslab.free_units, UINT32_MAX);
    assert_int_equal(superslab_longest_run(&superslab), SUPERSLAB_UNITS);
    assert_false(superslab_next_dirty(&superslab, 0, &run));
    assert_int_equal(superslab_find(&superslab, SUPERSLAB_UNITS, SUPERSLAB_UNITS, 7, &run), 0);
    assert_int_equal(run.first, 0);
    take(run);
    compare();
    assert_int_equal(superslab_find(&superslab, 1, 1, 0, &run), -1);
}

static void units_and_addresses_convert(void **state)
{
    (void)state;
    reset();
    for (unsigned unit = 0; unit < SUPERSLAB_UNITS; unit++) {
        char *address = superslab_address(&superslab, unit);
        assert_ptr_equal(address, base + unit * UNIT_SIZE);
        assert_int_equal(superslab_unit_of(address), unit);
        assert_int_equal(superslab_unit_of(address + UNIT_SIZE - 1), unit);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fresh_superslab_is_one_clean_run),
        cmocka_unit_test(units_and_addresses_convert),
        cmocka_unit_test(random_steps_agree_with_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
