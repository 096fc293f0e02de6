/* span/purge: what makes free memory go back: growth, excess, idleness, a request
 * (behaviours 22, 40). */
#include "unit.h"

#include <time.h>

#include "base/policy.h"
#include "os/os.h"
#include "span/big.h"
#include "span/page_heap.h"
#include "span/purge.h"

enum { RUN_PAGES = 64, RUNS = 256 };

static struct page_run runs[RUNS];

static size_t dirty_bytes(void)
{
    return page_heap_stats().dirty_free_pages * PAGE_SIZE;
}

static void take_runs(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        CHECK(page_heap_take(RUN_PAGES, 1, &runs[i]));
        memset(superslab_address(runs[i].superslab, runs[i].run.first), 1, RUN_PAGES * PAGE_SIZE);
    }
}

static void put_runs(unsigned first, unsigned end)
{
    for (unsigned i = first; i < end; i++)
        page_heap_put(runs[i].superslab, runs[i].run, RUN_PAGES);
}

static void a_request_gives_all_back(void **state)
{
    (void)state;
    policy.retain_percent = 1000;
    purge_everything();
    take_runs(20);
    void *block = big_alloc(4 * MIB, 16, false);
    put_runs(0, 10);
    big_free((struct big *)page_map_lookup(block), block, "free");
    size_t dirty = dirty_bytes(), cached = big_stats().cached_bytes;
    assert_int_equal(dirty, 10 * RUN_PAGES * PAGE_SIZE);
    assert_int_equal(cached, 4 * MIB);
    uint64_t before = purge_total();
    assert_int_equal(purge_everything(), dirty + cached);
    assert_int_equal(purge_total() - before, dirty + cached);
    assert_int_equal(dirty_bytes(), 0);
    assert_int_equal(big_stats().cached_bytes, 0);
    assert_int_equal(purge_everything(), 0);
    put_runs(10, 20);
    purge_everything();
}

/* More free dirty memory than the policy allows is not kept; until then, all of it is. What was in
 * use a moment ago may be kept too, up to 8 MiB at 25 percent. */
static void check_excess(long percent)
{
    policy.retain_percent = percent;
    purge_everything();
    take_runs(RUNS);
    size_t used = RUNS * RUN_PAGES * PAGE_SIZE, freed = 0;
    size_t recent = 8 * MIB / 25 * (size_t)percent;
    bool exceeded = false;
    for (unsigned i = 0; i < RUNS / 2; i++) {
        put_runs(i, i + 1);
        used -= RUN_PAGES * PAGE_SIZE;
        freed += RUN_PAGES * PAGE_SIZE;
        size_t keep = size_max(512 * KIB, used / 100 * (size_t)percent);
        CHECK(dirty_bytes() <= size_max(keep, recent));
        exceeded = exceeded || freed > keep;
        CHECK(exceeded || dirty_bytes() == freed);
    }
    assert_true(exceeded == (percent < 100));
    put_runs(RUNS / 2, RUNS);
    purge_everything();
}

static void excess_goes_back(void **state)
{
    (void)state;
    static const long percents[] = {0, 5, 25, 300};
    for (size_t i = 0; i < ARRAY_LENGTH(percents); i++)
        check_excess(percents[i]);
}

static void little_is_always_kept(void **state)
{
    (void)state;
    policy.retain_percent = 0;
    purge_everything();
    take_runs(2);
    uint64_t calls = os_counts[OS_MADVISE] + os_counts[OS_MUNMAP];
    for (int round = 0; round < 50; round++) {
        put_runs(0, 2);
        take_runs(2);
    }
    assert_int_equal(os_counts[OS_MADVISE] + os_counts[OS_MUNMAP], calls);
    put_runs(0, 2);
}

/* Before memory is mapped, what lies idle is given back. */
static void growth_is_paid_for(void **state)
{
    (void)state;
    policy.retain_percent = 1000;
    purge_everything();
    take_runs(RUNS);
    /* Every second run is freed: no hole is large enough for what comes. */
    for (unsigned i = 0; i < RUNS; i += 2)
        put_runs(i, i + 1);
    size_t dirty = dirty_bytes();
    uint64_t before = purge_total();
    struct page_run large;
    assert_true(page_heap_take(4 * RUN_PAGES, 1, &large));
    assert_true(purge_total() - before >= 4 * RUN_PAGES * PAGE_SIZE);
    assert_true(dirty_bytes() <= dirty - 4 * RUN_PAGES * PAGE_SIZE);
    page_heap_put(large.superslab, large.run, 0);
    for (unsigned i = 1; i < RUNS; i += 2)
        put_runs(i, i + 1);
    purge_everything();

    /* The same with the BigCache. */
    policy.big_cache_mib = 64;
    void *block = big_alloc(8 * MIB, 16, false);
    big_free((struct big *)page_map_lookup(block), block, "free");
    purge_before_growth(1);
    assert_int_equal(big_stats().cached_bytes, 0);
}

static void sleep_past(uint64_t milliseconds)
{
    struct timespec pause = {0, 2000000};
    uint64_t start = os_clock_ms();
    while (os_clock_ms() <= start + milliseconds)
        nanosleep(&pause, NULL);
}

static void idle_memory_goes_by_halves(void **state)
{
    (void)state;
    policy.retain_percent = 1000;
    policy.purge_delay_ms = 20;
    policy.big_cache_mib = 64;
    purge_everything();
    take_runs(80);
    void *block = big_alloc(4 * MIB, 16, false);
    put_runs(0, 40);
    big_free((struct big *)page_map_lookup(block), block, "free");
    sleep_past(20);
    purge_idle();
    assert_int_equal(big_stats().cached_bytes, 0);
    size_t once = dirty_bytes(), begun = 40 * RUN_PAGES * PAGE_SIZE;
    assert_true(once <= begun / 2 + 512 * KIB && once > begun / 4);
    /* At once again: nothing happens before the delay is over. */
    policy.purge_delay_ms = 3600000;
    purge_idle();
    assert_int_equal(dirty_bytes(), once);
    policy.purge_delay_ms = 20;
    sleep_past(20);
    purge_idle();
    assert_true(dirty_bytes() <= once / 2 + 512 * KIB);
    put_runs(40, 80);
    purge_everything();
}

static int start(void **state)
{
    (void)state;
    return page_heap_init() ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_gives_all_back),   cmocka_unit_test(excess_goes_back),
        cmocka_unit_test(little_is_always_kept),      cmocka_unit_test(growth_is_paid_for),
        cmocka_unit_test(idle_memory_goes_by_halves),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
