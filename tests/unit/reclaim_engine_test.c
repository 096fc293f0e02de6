/* reclaim/: what makes free memory go back: growth, idleness, a request
 * (behaviours 22, 40). */
#include "unit.h"

#include <sys/wait.h>
#include <unistd.h>

#include "api/alloc.h"
#include "base/policy.h"
#include "base/tuning.h"
#include "os/limits.h"
#include "os/os.h"
#include "reclaim/engine.h"
#include "reclaim/growth.h"
#include "slab/shard.h"
#include "span/big.h"
#include "span/page_heap.h"
#include "thread/fork.h"
#include "thread/heap.h"

uint64_t __real_os_clock_ms(void);
uint64_t __wrap_os_clock_ms(void);

/* The clock stands here, unless this is 0. */
static uint64_t stands_at_ms;

uint64_t __wrap_os_clock_ms(void)
{
    return stands_at_ms ? stands_at_ms : __real_os_clock_ms();
}

unsigned __real_shard_count(void);
unsigned __wrap_shard_count(void);

/* The hand asks wherever it may move to the next row: there the process forks, up to so often. */
static unsigned forks_left;

unsigned __wrap_shard_count(void)
{
    unsigned left = forks_left;
    forks_left = 0;
    if (left && !fork_holds_lock()) {
        left--;
        pid_t child = fork();
        if (child == 0) {
            while (engine_step(MIB))
                continue;
            _exit(0);
        }
        int status = -1;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    forks_left = left;
    return __real_shard_count();
}

enum { RUN_UNITS = 4, RUN_PAGES = RUN_UNITS * UNIT_PAGES, RUNS = 256 };

static struct unit_run runs[RUNS];

static size_t dirty_bytes(void)
{
    return page_heap_stats().dirty_free_pages * PAGE_SIZE;
}

static void take_runs(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        CHECK(page_heap_take(0, RUN_UNITS, 1, true, &runs[i]));
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
    reclaim_everything();
    take_runs(20);
    void *block = big_alloc(0, 4 * MIB, 16, false);
    put_runs(0, 10);
    big_free((struct big *)page_map_lookup(block), block, "free");
    size_t dirty = dirty_bytes(), cached = big_stats().cached_bytes;
    assert_int_equal(dirty, 10 * RUN_PAGES * PAGE_SIZE);
    assert_int_equal(cached, 4 * MIB);
    uint64_t before = pressure_total();
    assert_int_equal(reclaim_everything(), dirty + cached);
    assert_int_equal(pressure_total() - before, dirty + cached);
    assert_int_equal(dirty_bytes(), 0);
    assert_int_equal(big_stats().cached_bytes, 0);
    assert_int_equal(reclaim_everything(), 0);
    put_runs(10, 20);
    reclaim_everything();
}

/* Dirty bytes are down to `expected`; a superslab that is unmapped as a whole may be too much. */
static void check_left(size_t expected)
{
    CHECK(dirty_bytes() <= expected && dirty_bytes() + SUPERSLAB_PAGES * PAGE_SIZE > expected);
}

/* Ends the round that may be under way, and begins one if there is a reason to. */
static enum round begin(uint64_t now_ms)
{
    while (engine_step(MIB))
        continue;
    return engine_begin(now_ms);
}

/* A whole round, if it is time: true. One of growth from before comes first. */
static bool tick(uint64_t now_ms)
{
    enum round round = begin(now_ms);
    if (round == ROUND_GROWTH)
        round = begin(now_ms);
    while (engine_step(MIB))
        continue;
    return round == ROUND_IDLE;
}

/* Nothing goes at the moment it is freed; the purge is armed when more lies free than the policy
 * keeps, and no more when that is over. */
static void excess_arms_the_purge(void **state)
{
    (void)state;
    static const long percents[] = {0, 5, 25, 300};
    uint64_t now_ms = os_clock_ms() + 3600000;
    policy.purge_delay_ms = 100;
    for (size_t i = 0; i < ARRAY_LENGTH(percents); i++) {
        policy.retain_percent = percents[i];
        reclaim_everything();
        take_runs(RUNS);
        assert_true(tick(now_ms += 100));
        size_t used = RUNS * RUN_PAGES * PAGE_SIZE, freed = 0;
        uint64_t calls = os_counts[OS_MADVISE] + os_counts[OS_MUNMAP];
        for (unsigned run = 0; run < RUNS / 2; run++) {
            put_runs(run, run + 1);
            used -= RUN_PAGES * PAGE_SIZE;
            freed += RUN_PAGES * PAGE_SIZE;
            size_t keep = size_max(256 * KIB, used / 100 * (size_t)percents[i]);
            CHECK(dirty_bytes() == freed);
            CHECK(pressure_is_armed() == (freed > keep));
        }
        assert_int_equal(os_counts[OS_MADVISE] + os_counts[OS_MUNMAP], calls);
        put_runs(RUNS / 2, RUNS);
        reclaim_everything();
        assert_true(tick(now_ms += 100));
        assert_false(pressure_is_armed());
    }
}

/* What was taken for a moment since the last tick is not purged. */
static void only_unused_memory_goes(void **state)
{
    (void)state;
    uint64_t now_ms = os_clock_ms() + 2 * 3600000;
    policy.purge_delay_ms = 100;
    policy.retain_percent = 25;
    reclaim_everything();
    take_runs(80);
    put_runs(0, 80);
    size_t dirty = dirty_bytes();
    assert_true(tick(now_ms += 100)); /* unused was nothing until now */
    assert_int_equal(dirty_bytes(), dirty);
    take_runs(70);
    put_runs(0, 70);
    assert_false(tick(now_ms + 99));
    assert_true(tick(now_ms += 100));
    check_left(dirty - (10 * RUN_PAGES * PAGE_SIZE - 256 * KIB));
    assert_true(tick(now_ms += 100));
    check_left(256 * KIB);
}

static void little_is_always_kept(void **state)
{
    (void)state;
    policy.retain_percent = 0;
    reclaim_everything();
    take_runs(2);
    uint64_t calls = os_counts[OS_MADVISE] + os_counts[OS_MUNMAP];
    for (int round = 0; round < 50; round++) {
        put_runs(0, 2);
        take_runs(2);
    }
    assert_int_equal(os_counts[OS_MADVISE] + os_counts[OS_MUNMAP], calls);
    put_runs(0, 2);
}

/* Lets memory be mapped, at least so much that it counts. */
static void grow_by(size_t bytes)
{
    reclaim_before_growth(size_max(bytes, REGION_SIZE), false);
}

/* When memory is mapped, what lies idle is given back. */
static void growth_is_paid_for(void **state)
{
    (void)state;
    policy.retain_percent = 1000;
    reclaim_everything();
    take_runs(RUNS);
    /* Every second run is freed: no hole is large enough for what comes. */
    for (unsigned i = 0; i < RUNS; i += 2)
        put_runs(i, i + 1);
    size_t dirty = dirty_bytes();
    uint64_t before = pressure_total();
    /* It may be needed at once, so the first growth only begins to watch. */
    grow_by(dirty / 8);
    assert_int_equal(pressure_total(), before);
    grow_by(dirty / 8);
    assert_true(pressure_total() - before >= size_max(dirty / 8, REGION_SIZE));
    assert_true(dirty_bytes() <= dirty - size_max(dirty / 8, REGION_SIZE));
    for (unsigned i = 1; i < RUNS; i += 2)
        put_runs(i, i + 1);
    reclaim_everything();

    /* The same with the BigCache. */
    policy.big_cache_mib = 64;
    void *block = big_alloc(0, 8 * MIB, 16, false);
    big_free((struct big *)page_map_lookup(block), block, "free");
    grow_by(1);
    assert_int_equal(big_stats().cached_bytes, 8 * MIB);
    grow_by(1);
    assert_int_equal(big_stats().cached_bytes, 6 * MIB);
    reclaim_everything();
}

/* Runs of one unit more fit into no hole that one of `runs` leaves. */
enum { MORE_UNITS = RUN_UNITS + 1, MORE = 24, MORE_BYTES = MORE_UNITS * UNIT_SIZE };

static struct unit_run more[MORE];

static void take_more(unsigned first, unsigned end)
{
    for (unsigned i = first; i < end; i++) {
        CHECK(page_heap_take(0, MORE_UNITS, 1, true, &more[i]));
        pressure_taken(MORE_BYTES, false);
    }
}

static void put_more(void)
{
    for (unsigned i = 0; i < MORE; i++)
        page_heap_put(more[i].superslab, more[i].run, 0);
}

/* Superslabs with room for `more`: mapping them later would be paid for as well. */
static void make_room_for_more(void)
{
    take_more(0, MORE);
    put_more();
}

static void begin_round_of_growth(void)
{
    growth_begin_round();
    stands_at_ms = os_clock_ms() + 3600000;
}

/* Pages that are taken are paid for with free ones where more is resident than at the beginning of
 * the round: PAID_MOST at once, then so many bytes a millisecond, but not with the last. */
static void pages_that_are_taken_are_paid_for(void **state)
{
    (void)state;
    enum { TAKEN = 48, AT_ONCE = PAID_MOST / MORE_BYTES + 1 };
    policy.retain_percent = 25;
    reclaim_everything();
    take_runs(TAKEN);
    make_room_for_more();
    /* No superslab is wholly free: one that is goes as a whole. */
    for (unsigned i = 0; i < TAKEN; i += 2)
        put_runs(i, i + 1);
    begin_round_of_growth();
    size_t dirty = dirty_bytes();
    for (int i = 0; i < 100; i++)
        pressure_taken(UNIT_SIZE, false);
    assert_int_equal(dirty_bytes(), dirty);
    take_more(0, AT_ONCE);
    assert_in_range(dirty - dirty_bytes(), PAID_MOST, PAID_MOST + UNIT_SIZE - 1);
    dirty = dirty_bytes();
    take_more(AT_ONCE, AT_ONCE + 2);
    assert_int_equal(dirty_bytes(), dirty);
    stands_at_ms++;
    take_more(AT_ONCE + 2, AT_ONCE + 3);
    assert_int_equal(dirty - dirty_bytes(), PAID_A_MS);
    stands_at_ms += 1000;
    take_more(AT_ONCE + 3, MORE);
    assert_int_equal(dirty_bytes(), KEPT_MIN);
    stands_at_ms = 0;
    put_more();
    for (unsigned i = 1; i < TAKEN; i += 2)
        put_runs(i, i + 1);
    reclaim_everything();
}

static void so_they_are_with_a_limit_far_away(void **state)
{
    policy.limit_mib = 1000000;
    pages_that_are_taken_are_paid_for(state);
    policy.limit_mib = 0;
}

static struct big *big_of(const void *block)
{
    return (struct big *)page_map_lookup(block);
}

/* If too few pages lie free, cached big blocks pay, but not for others like them. */
static void big_blocks_pay_for_pages(void **state)
{
    (void)state;
    policy.retain_percent = 0;
    policy.big_cache_mib = 64;
    reclaim_everything();
    make_room_for_more();
    void *block = big_alloc(0, 8 * MIB, 16, false);
    big_free(big_of(block), block, "free");
    begin_round_of_growth();
    pressure_taken(8 * MIB, true);
    assert_int_equal(big_cache_bytes(), 8 * MIB);
    take_more(0, MORE - 1);
    assert_int_equal(big_cache_bytes(), 8 * MIB - PAID_MOST);
    stands_at_ms++;
    take_more(MORE - 1, MORE);
    assert_int_equal(big_cache_bytes(), 8 * MIB - PAID_MOST - PAID_A_MS);
    stands_at_ms = 0;
    put_more();
    reclaim_everything();
}

/* If too few pages lie free, those of cached blocks pay, and no more often. */
static void cached_blocks_pay_for_pages(void **state)
{
    (void)state;
    struct heap *heap = heap_enter();
    unsigned size_class = size_class_of(MIB);
    policy.retain_percent = 1000;
    reclaim_everything();
    make_room_for_more();
    begin_round_of_growth();
    release(alloc(MIB));
    pressure_taken(UNIT_SIZE, false);
    assert_int_equal(heap_cached_blocks(heap, size_class), 1);
    take_more(0, 4);
    assert_int_equal(heap_cached_blocks(heap, size_class), 0);
    stands_at_ms = 0;
    take_more(4, MORE);
    put_more();
    heap_leave(heap);
    reclaim_everything();
}

/* Clean addresses that serve again are not paid for by what is cached: it serves the next block. */
static void growth_of_big_blocks_leaves_the_cache(void **state)
{
    (void)state;
    enum { SHORT = 8 };
    void *blocks[SHORT];
    policy.retain_percent = 25;
    policy.big_cache_mib = 256;
    reclaim_everything();
    for (unsigned i = 0; i < SHORT; i++)
        blocks[i] = big_alloc(0, 4 * MIB, 16, false);
    void *long_block = big_alloc(0, 20 * MIB, 16, false);
    big_free(big_of(long_block), long_block, "free");
    assert_int_equal(big_cache_evict(19 * MIB), 19 * MIB);
    for (unsigned i = 0; i < SHORT; i += 2)
        big_free(big_of(blocks[i]), blocks[i], "free");
    assert_int_equal(big_cache_bytes(), 17 * MIB);
    assert_ptr_equal(big_alloc(0, 20 * MIB, 16, false), long_block);
    assert_int_equal(big_cache_bytes(), 16 * MIB);
    big_free(big_of(long_block), long_block, "free");
    for (unsigned i = 1; i < SHORT; i += 2)
        big_free(big_of(blocks[i]), blocks[i], "free");
    reclaim_everything();
}

/* What comes and goes is left alone, however much is mapped meanwhile. */
static void growth_leaves_what_is_in_use(void **state)
{
    (void)state;
    policy.retain_percent = 1000;
    policy.big_cache_mib = 64;
    reclaim_everything();
    void *block = big_alloc(0, 8 * MIB, 16, false);
    big_free((struct big *)page_map_lookup(block), block, "free");
    size_t dirty = 0;
    uint64_t before = 0;
    for (int round = 0; round < 20; round++) {
        if (round == 3) { /* by now the runs lie where they will */
            dirty = dirty_bytes();
            before = pressure_total();
        }
        assert_ptr_equal(big_alloc(0, 8 * MIB, 16, false), block);
        take_runs(RUNS);
        grow_by(1);
        put_runs(0, RUNS);
        big_free((struct big *)page_map_lookup(block), block, "free");
        grow_by(1);
    }
    assert_int_equal(dirty_bytes(), dirty);
    assert_int_equal(pressure_total(), before);
    reclaim_everything();
}

/* Memory that the policy allows to keep goes too when nobody needs it, but slowly: half of what
 * there is beyond the least in BigCache and page heap together, of the BigCache first. */
static void idle_memory_goes_by_halves(void **state)
{
    (void)state;
    policy.retain_percent = 1000;
    policy.purge_delay_ms = 20;
    policy.big_cache_mib = 64;
    reclaim_everything();
    take_runs(80);
    void *block = big_alloc(0, 4 * MIB, 16, false);
    put_runs(0, 40);
    big_free((struct big *)page_map_lookup(block), block, "free");
    assert_true(pressure_is_armed());
    uint64_t now_ms = os_clock_ms() + 3 * 3600000;
    tick(now_ms);
    size_t begun = dirty_bytes();
    assert_int_equal(begun, 40 * RUN_PAGES * PAGE_SIZE);
    assert_int_equal(big_stats().cached_bytes, 4 * MIB);
    assert_true(tick(now_ms += 20));
    size_t gone = (begun + 4 * MIB - 256 * KIB) / 2;
    assert_int_equal(big_stats().cached_bytes, 0);
    check_left(begun - (gone - 4 * MIB));
    size_t once = dirty_bytes();
    assert_false(tick(now_ms + 19));
    assert_int_equal(dirty_bytes(), once);
    assert_true(tick(now_ms += 20));
    check_left(once - (once - 256 * KIB) / 2);
    put_runs(40, 80);
    reclaim_everything();
}

/* What big blocks use counts as used: beside much of it little that lies free is no excess. */
static void big_blocks_count_as_used(void **state)
{
    (void)state;
    policy.retain_percent = 50;
    policy.purge_delay_ms = 20;
    uint64_t now_ms = os_clock_ms() + 5 * 3600000;
    for (unsigned with_big = 0; with_big < 2; with_big++) {
        reclaim_everything();
        void *big = with_big ? big_alloc(0, 64 * MIB, 16, false) : NULL;
        take_runs(40);
        put_runs(0, 40);
        size_t begun = dirty_bytes();
        tick(now_ms += 20);
        tick(now_ms += 20);
        check_left(with_big ? begun - (begun - 256 * KIB) / 2 : 256 * KIB);
        if (big)
            big_free((struct big *)page_map_lookup(big), big, "free");
    }
    reclaim_everything();
}

/* How much memory of the process is resident; bytes. */
static size_t resident(void)
{
    return os_footprint_read("").resident_bytes;
}

/* No step gives much at once, wherever the memory lies, and all of it goes in the end. */
static void steps_are_short(void **state)
{
    (void)state;
    enum { BLOCKS = 60000, MOST = 3 };
    static const size_t sizes[] = {40, 700, 3000, 20000, 300000, 5 * MIB};
    static void *blocks[BLOCKS];
    uint64_t now_ms = os_clock_ms() + 8 * 3600000;
    policy.retain_percent = 0;
    policy.purge_delay_ms = 100;
    policy.big_cache_mib = 64;
    reclaim_everything();
    size_t before = resident();
    size_t apart = os_page_size() / 4096 * 100; /* blocks; else one in each page stays */
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        size_t count = size_min(40 * MIB / sizes[i], BLOCKS);
        for (size_t block = 0; block < count; block++)
            memset(blocks[block] = alloc(sizes[i]), 1, sizes[i]);
        for (size_t block = 0; block < count; block++)
            if (block % apart || sizes[i] > 700)
                release(blocks[block]);
    }
    CHECK(resident() - before > 30 * MIB);
    for (int round = 0; round < 5; round++) {
        begin(now_ms += 100);
        for (size_t held = resident(), now; engine_step(PURGE_STEP); held = now) {
            now = resident();
            CHECK(now + MOST * PURGE_STEP >= held);
        }
    }
    /* What sanitizers keep about it stays. */
    CHECK(resident() - before < 16 * MIB || HAKMEM_SANITIZE_THREAD || HAKMEM_SANITIZE_ADDRESS);
}

/* Growth while much lies free is told to the bins. */
static void growth_ticks_while_armed(void **state)
{
    (void)state;
    uint64_t now_ms = os_clock_ms() + 6 * 3600000;
    tick(now_ms);
    begin(now_ms); /* growth from before */
    reclaim_before_growth(1, false);
    assert_int_equal(begin(now_ms), ROUND_NONE);
    pressure_arm();
    reclaim_before_growth(1, false);
    assert_int_equal(begin(now_ms), ROUND_GROWTH);
    assert_int_equal(begin(now_ms), ROUND_NONE);
}

/* A child of fork goes on with the hand wherever its parent was, also behind the last place. */
static void a_child_goes_on_with_the_hand(void **state)
{
    (void)state;
    uint64_t now_ms = os_clock_ms() + 8 * 3600000;
    /* One of the last bins has a slab. */
    void *block = alloc(LARGE_MAX);
    assert_int_equal(begin(now_ms), ROUND_IDLE);
    for (forks_left = 3000; engine_step(MIB);)
        continue;
    assert_in_range(forks_left, 1, 2999);
    forks_left = 0;
    release(block);
}

/* A child of fork may have a clock that stands earlier. */
static void a_clock_that_was_set_back_does_not_stop_ticks(void **state)
{
    (void)state;
    policy.purge_delay_ms = 1000;
    uint64_t now_ms = os_clock_ms() + 7 * 3600000, before_ms = now_ms - 3 * 3600000;
    assert_int_equal(begin(now_ms), ROUND_IDLE);
    assert_int_equal(begin(now_ms - 1), ROUND_NONE);
    assert_int_equal(begin(before_ms), ROUND_IDLE);
    assert_int_equal(begin(before_ms + 999), ROUND_NONE);
    assert_int_equal(begin(before_ms + 1000), ROUND_IDLE);
}

static int start(void **state)
{
    (void)state;
    return page_heap_init() ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_gives_all_back),
        cmocka_unit_test(excess_arms_the_purge),
        cmocka_unit_test(only_unused_memory_goes),
        cmocka_unit_test(little_is_always_kept),
        cmocka_unit_test(growth_is_paid_for),
        cmocka_unit_test(pages_that_are_taken_are_paid_for),
        cmocka_unit_test(so_they_are_with_a_limit_far_away),
        cmocka_unit_test(big_blocks_pay_for_pages),
        cmocka_unit_test(cached_blocks_pay_for_pages),
        cmocka_unit_test(growth_of_big_blocks_leaves_the_cache),
        cmocka_unit_test(growth_leaves_what_is_in_use),
        cmocka_unit_test(idle_memory_goes_by_halves),
        cmocka_unit_test(big_blocks_count_as_used),
        cmocka_unit_test(steps_are_short),
        cmocka_unit_test(growth_ticks_while_armed),
        cmocka_unit_test(a_child_goes_on_with_the_hand),
        cmocka_unit_test(a_clock_that_was_set_back_does_not_stop_ticks),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
