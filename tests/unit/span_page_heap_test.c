/* span/page_heap: random steps against a list of what was handed out. Every page carries its
 * owner's stamp while it is out, so overlaps show; pages that are said to be clean must read as
 * zero (behaviour 11); the walker runs after every step. */
#include "unit.h"

#include <time.h>

#include "base/policy.h"
#include "checks/checks.h"
#include "os/os.h"
#include "span/page_heap.h"

enum { RUNS = 300, STEPS = 6000, PARTS = 3 };

struct held {
    struct unit_run taken;
    unsigned touched; /* leading pages that were written */
    uint64_t stamp;
};

static struct held held[RUNS];
static size_t held_pages;

static uint64_t *page_at(const struct held *held_run, unsigned page)
{
    const struct unit_run *taken = &held_run->taken;
    return (uint64_t *)(superslab_address(taken->superslab, taken->run.first) + page * PAGE_SIZE);
}

static unsigned pages_of(const struct held *held_run)
{
    return held_run->taken.run.units * UNIT_PAGES;
}

/* The pages that are not marked dirty read as zero. */
static void check_clean_pages(const struct held *held_run)
{
    bool all_clean = true;
    for (unsigned page = 0; page < pages_of(held_run); page++) {
        bool dirty = superslab_is_dirty(held_run->taken.superslab, page_at(held_run, page));
        all_clean = all_clean && !dirty;
        if (!dirty)
            CHECK(unit_all_bytes(page_at(held_run, page), PAGE_SIZE, 0));
    }
    CHECK((held_run->taken.dirty_pages == 0) == all_clean);
}

static void stamp(struct held *held_run, unsigned touched)
{
    for (unsigned page = 0; page < touched; page++)
        for (unsigned word = 0; word < PAGE_SIZE / 8; word += 73)
            page_at(held_run, page)[word] = held_run->stamp + page;
    held_run->touched = touched;
}

static void check_stamp(const struct held *held_run)
{
    for (unsigned page = 0; page < held_run->touched; page++)
        for (unsigned word = 0; word < PAGE_SIZE / 8; word += 73)
            CHECK(page_at(held_run, page)[word] == held_run->stamp + page);
}

static void take(struct held *slot, uint64_t *random)
{
    unsigned units = 1 + unit_below(random, 1u << unit_below(random, 6));
    unsigned alignment = unit_below(random, 3) ? 1 : 1u << unit_below(random, 6);
    unsigned part = unit_below(random, PARTS);
    CHECK(page_heap_take(part, units, alignment, true, &slot->taken));
    CHECK(slot->taken.run.units == units && slot->taken.run.first % alignment == 0);
    CHECK(slot->taken.run.first + units <= SUPERSLAB_UNITS);
    held_pages += pages_of(slot);
    slot->stamp = unit_random(random) | 1;
    check_clean_pages(slot);
    stamp(slot, unit_below(random, pages_of(slot) + 1));
}

static void put(struct held *slot)
{
    check_stamp(slot);
    held_pages -= pages_of(slot);
    page_heap_put(slot->taken.superslab, slot->taken.run, slot->touched);
    slot->taken.superslab = NULL;
}

/* Takes the units behind a run, if they are free by the superslab's own record. */
static void extend(struct held *slot, uint64_t *random)
{
    struct superslab *superslab = slot->taken.superslab;
    struct run more = {slot->taken.run.first + slot->taken.run.units, 1 + unit_below(random, 4)};
    bool free = more.first + more.units <= SUPERSLAB_UNITS;
    for (unsigned unit = more.first; unit < more.first + more.units && free; unit++)
        free = superslab->free_units >> unit & 1;
    CHECK(page_heap_take_at(superslab, more) == free);
    if (!free)
        return;
    held_pages += more.units * UNIT_PAGES;
    slot->taken.run.units += more.units;
    stamp(slot, pages_of(slot));
}

static void purge(uint64_t *random)
{
    struct page_heap_stats before = page_heap_stats();
    size_t bytes = unit_below(random, 3) ? unit_below(random, 4 * MIB) : SIZE_MAX;
    size_t purged = page_heap_purge(bytes);
    struct page_heap_stats after = page_heap_stats();
    CHECK(before.dirty_free_pages - after.dirty_free_pages == purged / PAGE_SIZE);
    CHECK(purged >= size_min(bytes, before.dirty_free_pages * PAGE_SIZE));
    CHECK(bytes != SIZE_MAX || after.dirty_free_pages == 0);
}

static void check(void)
{
    page_heap_check();
    CHECK(page_heap_stats().used_pages == held_pages);
}

static void put_all(void)
{
    for (unsigned i = 0; i < RUNS; i++)
        if (held[i].taken.superslab)
            put(&held[i]);
    check();
    assert_int_equal(held_pages, 0);
}

static void run_steps(uint64_t random)
{
    for (int step = 0; step < STEPS; step++) {
        struct held *slot = &held[unit_below(&random, RUNS)];
        unsigned choice = unit_below(&random, 100);
        if (choice == 0)
            purge(&random);
        else if (!slot->taken.superslab)
            take(slot, &random);
        else if (choice < 20)
            extend(slot, &random);
        else
            put(slot);
        check();
    }
    put_all();
}

static void random_steps_agree_with_the_model(void **state)
{
    (void)state;
    const long retain[] = {25, 0, 1000};
    for (unsigned i = 0; i < ARRAY_LENGTH(retain); i++) {
        policy.retain_percent = retain[i];
        run_steps(i + 1);
    }
    policy.retain_percent = 25;
}

/* Those that were never touched, too. */
static void empty_superslabs_go_back_to_the_system(void **state)
{
    (void)state;
    enum { SUPERSLABS = 5 };
    struct unit_run taken[SUPERSLABS];
    char *base[SUPERSLABS];
    put_all();
    policy.retain_percent = 1000;
    for (unsigned i = 0; i < SUPERSLABS; i++) {
        assert_true(page_heap_take(0, SUPERSLAB_UNITS, 1, true, &taken[i]));
        base[i] = superslab_address(taken[i].superslab, 0);
        if (i % 2 == 0)
            memset(base[i], 1, REGION_SIZE);
    }
    assert_true(page_heap_stats().superslabs >= SUPERSLABS);
    uint64_t unmaps = os_counts[OS_MUNMAP];
    for (unsigned i = 0; i < SUPERSLABS; i++)
        page_heap_put(taken[i].superslab, taken[i].run, i % 2 == 0 ? SUPERSLAB_PAGES : 0);
    page_heap_purge(SIZE_MAX);
    page_heap_check();
    policy.retain_percent = 25;
    unsigned known = 0;
    for (unsigned i = 0; i < SUPERSLABS; i++)
        known += page_map_lookup(base[i]) != NULL;
    assert_int_equal(page_heap_stats().dirty_free_pages, 0);
    assert_int_equal(page_heap_stats().superslabs, 1);
    assert_true(known <= 1);
    assert_true(os_counts[OS_MUNMAP] - unmaps >= SUPERSLABS - 1);
}

/* A block that fits a hole goes there, and not into the wide free space. */
static void the_hole_that_fits_is_used(void **state)
{
    (void)state;
    struct unit_run hole, wall, wide, got;
    put_all();
    page_heap_purge(SIZE_MAX);
    assert_true(page_heap_take(0, 7, 1, true, &hole));
    assert_true(page_heap_take(0, 3, 1, true, &wall));
    assert_true(page_heap_take(0, 10, 1, true, &wide));
    page_heap_put(hole.superslab, hole.run, 7);
    assert_true(page_heap_take(0, 6, 1, true, &got));
    assert_ptr_equal(got.superslab, hole.superslab);
    assert_int_equal(got.run.first, hole.run.first);
    assert_true(got.dirty_pages > 0);
    page_heap_put(got.superslab, got.run, 0);
    page_heap_put(wall.superslab, wall.run, 0);
    page_heap_put(wide.superslab, wide.run, 0);
    page_heap_check();
}

/* behaviour 50: however many superslabs have no room, a search ends soon; and what has room for
 * sure is found. */
static void searches_do_not_grow_with_the_heap(void **state)
{
    (void)state;
    enum { MANY = 20000, SEARCHES = 200, IN_TURN = 50 };
    static struct unit_run whole[MANY], aligned[SEARCHES];
    for (int i = 0; i < MANY; i++)
        CHECK(page_heap_take(0, SUPERSLAB_UNITS, 1, true, &whole[i]));
    /* Holes of three units, of which only the two last start at an even one. */
    for (int i = 0; i < MANY; i++)
        for (unsigned unit = 0; unit < SUPERSLAB_UNITS; unit += 4)
            page_heap_put(whole[i].superslab, (struct run){unit + 1, 3}, 0);
    double least_ms = 1e9; /* of several: the machine may do something else meanwhile */
    for (int first = 0; first < SEARCHES; first += IN_TURN) {
        struct timespec before, after;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
        for (int i = first; i < first + IN_TURN; i++)
            CHECK(page_heap_take(0, i % 2 ? 4 : 3, i % 2 ? 4 : 2, true, &aligned[i]));
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
        double ms = (double)(after.tv_sec - before.tv_sec) * 1e3 +
                    (double)(after.tv_nsec - before.tv_nsec) / 1e6;
        least_ms = ms < least_ms ? ms : least_ms;
    }
    CHECK(least_ms / IN_TURN < 0.5); /* to look at all of them takes 2 ms */
    page_heap_check();
    for (int i = 0; i < SEARCHES; i++)
        page_heap_put(aligned[i].superslab, aligned[i].run, 0);
    for (int i = 0; i < MANY; i++)
        for (unsigned unit = 0; unit < SUPERSLAB_UNITS; unit += 4)
            page_heap_put(whole[i].superslab, (struct run){unit, 1}, 0);
    page_heap_purge(SIZE_MAX);
    check();
}

/* behaviours 37 and 39: no memory is a false, and what is freed serves again. */
static void exhaust(void *argument)
{
    (void)argument;
    struct rlimit none = {4096, 4096};
    enum { MOST = 2000 };
    static struct unit_run taken[MOST];
    unsigned count = 0;
    CHECK(setrlimit(RLIMIT_AS, &none) == 0);
    while (count < MOST && page_heap_take(0, 7, 1, true, &taken[count]))
        count++;
    CHECK(count > 0 && count < MOST);
    page_heap_check();
    CHECK(!page_heap_take(0, SUPERSLAB_UNITS, 1, true, &taken[MOST - 1]));
    page_heap_put(taken[0].superslab, taken[0].run, 100);
    CHECK(page_heap_take(0, 7, 1, true, &taken[0]));
    page_heap_check();
}

static void exhaustion_is_reported_and_passes(void **state)
{
    (void)state;
    put_all();
    unit_in_child(exhaust, NULL);
}

static int start(void **state)
{
    (void)state;
    return page_heap_init() && page_heap_init() && page_heap_stats().superslabs == 1 ? 0 : -1;
}

/* What is locked cannot be purged: no purge tries all of it again and again, and what is not locked
 * is found all the same, though less of it is dirty. A request for everything finds at once what is
 * no longer locked. */
static void locked_memory_is_left_alone(void **state)
{
    (void)state;
    enum { LOCKED = 24, TRIES = 8 };
    const size_t much = SIZE_MAX / 2;
    struct unit_run kept[LOCKED + 1], freed[LOCKED + 1];
    page_heap_purge(SIZE_MAX);
    for (unsigned i = 0; i <= LOCKED; i++) {
        unsigned units = i < LOCKED ? SUPERSLAB_UNITS - 1 : 1;
        CHECK(page_heap_take(0, SUPERSLAB_UNITS - units, 1, true, &kept[i]));
        CHECK(page_heap_take(0, units, 1, true, &freed[i]));
        CHECK(freed[i].superslab == kept[i].superslab);
    }
    for (unsigned i = 0; i <= LOCKED; i++) {
        char *base = superslab_address(freed[i].superslab, freed[i].run.first);
        memset(base, 1, PAGE_SIZE);
        CHECK(i == LOCKED || unit_lock(base, PAGE_SIZE));
        page_heap_put(freed[i].superslab, freed[i].run, 1);
    }
    char *loose = superslab_address(freed[LOCKED].superslab, freed[LOCKED].run.first);
    for (unsigned round = 0; round < 4; round++) {
        uint64_t calls = os_counts[OS_MADVISE];
        page_heap_purge(much);
        assert_true(os_counts[OS_MADVISE] - calls <= TRIES + 1);
        page_heap_check();
    }
    assert_false(unit_is_resident(loose));
    uint64_t calls = os_counts[OS_MADVISE];
    page_heap_purge(much);
    assert_int_equal(os_counts[OS_MADVISE], calls);
    for (unsigned i = 0; i < LOCKED; i++)
        CHECK(unit_unlock(superslab_address(freed[i].superslab, freed[i].run.first), PAGE_SIZE));
    page_heap_purge(SIZE_MAX);
    assert_int_equal(page_heap_stats().dirty_free_pages, 0);
    for (unsigned i = 0; i <= LOCKED; i++)
        page_heap_put(kept[i].superslab, kept[i].run, 0);
    page_heap_purge(SIZE_MAX);
}

/* Threads of two shards do not meet, but none maps what another one has to spare. */
static void parts_are_apart(void **state)
{
    (void)state;
    enum { UNITS = 3 };
    struct unit_run own, other, again;
    page_heap_purge(SIZE_MAX);
    assert_true(page_heap_take(1, UNITS, 1, true, &own));
    assert_true(page_heap_take(2, UNITS, 1, true, &other));
    assert_int_equal(own.superslab->part, 1);
    assert_int_equal(other.superslab->part, 2);
    assert_false(page_heap_take(3, UNITS, 1, false, &again));
    page_heap_put(own.superslab, own.run, UNITS * UNIT_PAGES);
    assert_true(page_heap_take(2, UNITS, 1, false, &again));
    assert_ptr_equal(again.superslab, other.superslab);
    page_heap_put(again.superslab, again.run, 0);
    assert_true(page_heap_take(3, UNITS, 1, true, &again));
    assert_ptr_equal(again.superslab, own.superslab);
    page_heap_check();
    page_heap_put(again.superslab, again.run, 0);
    page_heap_put(other.superslab, other.run, 0);
    page_heap_purge(SIZE_MAX);
    page_heap_check();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hole_that_fits_is_used),
        cmocka_unit_test(empty_superslabs_go_back_to_the_system),
        cmocka_unit_test(random_steps_agree_with_the_model),
        cmocka_unit_test(searches_do_not_grow_with_the_heap),
        cmocka_unit_test(exhaustion_is_reported_and_passes),
        cmocka_unit_test(locked_memory_is_left_alone),
        cmocka_unit_test(parts_are_apart),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
