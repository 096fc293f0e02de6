/* The statistics of the library itself: a script of calls whose numbers are known, against
 * hakmem_get_stats, hakmem_get_class and hakmem_stats_json. Here malloc is hakmem. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "hakmem/hakmem.h"
#include "json_check.h"

enum { BLOCKS = 1000, TIERS = HAKMEM_TIER_BIG + 1 };

static void *blocks[BLOCKS];

static struct hakmem_stats stats_now(void)
{
    struct hakmem_stats stats;
    hakmem_get_stats(&stats, sizeof stats);
    return stats;
}

static unsigned class_of(size_t size)
{
    unsigned index = 0;
    while (hakmem_class_size(index) < size)
        index++;
    return index;
}

static struct hakmem_usage usage_of(unsigned index)
{
    struct hakmem_usage usage;
    assert_int_equal(hakmem_get_class(index, &usage, sizeof usage), sizeof usage);
    return usage;
}

/* Nothing but the script may allocate between two looks at the figures: no cmocka call. */
struct look {
    struct hakmem_usage usage;
    struct hakmem_usage tier[TIERS];
};

static void look(struct look *at, unsigned index)
{
    hakmem_get_class(index, &at->usage, sizeof at->usage);
    for (unsigned tier = 0; tier < TIERS; tier++)
        hakmem_get_tier(tier, &at->tier[tier], sizeof at->tier[tier]);
}

static void calls_are_counted_exactly(void **state)
{
    (void)state;
    static const size_t sizes[] = {24, 500, 1024, 1025, 9000, 32768};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        unsigned index = class_of(sizes[s]);
        struct look start, full, half;
        /* A class without a slab borrows its first blocks from another. */
        void *kept[16];
        for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
            kept[i] = malloc(sizes[s]);
        look(&start, index);
        for (int i = 0; i < BLOCKS; i++)
            blocks[i] = malloc(sizes[s]);
        look(&full, index);
        for (int i = 0; i < BLOCKS / 2; i++)
            free(blocks[2 * i]);
        look(&half, index);
        for (int i = 0; i < BLOCKS / 2; i++)
            free(blocks[2 * i + 1]);

        size_t usable = hakmem_class_size(index);
        enum hakmem_tier tier = sizes[s] <= 1024 ? HAKMEM_TIER_TINY : HAKMEM_TIER_MID;
        assert_int_equal(full.usage.malloc_calls - start.usage.malloc_calls, BLOCKS);
        assert_int_equal(full.usage.free_calls, start.usage.free_calls);
        assert_int_equal(full.usage.live_blocks - start.usage.live_blocks, BLOCKS);
        assert_int_equal(full.usage.live_bytes - start.usage.live_bytes, BLOCKS * usable);
        assert_int_equal(half.usage.malloc_calls, full.usage.malloc_calls);
        assert_int_equal(half.usage.free_calls - full.usage.free_calls, BLOCKS / 2);
        assert_int_equal(full.usage.live_blocks - half.usage.live_blocks, BLOCKS / 2);
        /* Each batch belongs to a call that did not hit. */
        uint64_t calls = full.usage.malloc_calls - start.usage.malloc_calls;
        uint64_t hits = full.usage.malloc_hits - start.usage.malloc_hits;
        assert_true(full.usage.refills - start.usage.refills <= calls - hits);
        uint64_t misses = half.usage.free_calls - half.usage.free_hits -
                          (full.usage.free_calls - full.usage.free_hits);
        assert_true(half.usage.flushes - full.usage.flushes <= misses);
        assert_true(full.usage.committed_bytes >= full.usage.live_bytes);
        /* The tier tells the same story as its class. */
        assert_int_equal(full.tier[tier].malloc_calls - start.tier[tier].malloc_calls, BLOCKS);
        assert_int_equal(half.tier[tier].free_calls - full.tier[tier].free_calls, BLOCKS / 2);
        for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
            free(kept[i]);
    }
}

static void hits_are_the_rule(void **state)
{
    (void)state;
    unsigned index = class_of(100);
    for (int i = 0; i < 100; i++)
        free(malloc(100));
    /* Otherwise the heap may be parked now and then, and the next call is a miss. */
    hakmem_purge();
    for (int i = 0; i < 100; i++)
        free(malloc(100));
    struct look start, end;
    look(&start, index);
    for (int i = 0; i < 10000; i++)
        free(malloc(100));
    look(&end, index);
    assert_int_equal(end.usage.malloc_calls - start.usage.malloc_calls, 10000);
    /* All but those that a purge, which may be due meanwhile, sends another way. */
    assert_true(end.usage.malloc_hits - start.usage.malloc_hits >= 9000);
    assert_int_equal(end.usage.free_calls - start.usage.free_calls, 10000);
    assert_true(end.usage.free_hits - start.usage.free_hits >= 9000);
    assert_int_equal(end.usage.refills, start.usage.refills);
    assert_int_equal(end.usage.flushes, start.usage.flushes);
}

static void check_page_tier(enum hakmem_tier tier, size_t size, size_t usable)
{
    struct look start, full, end;
    look(&start, 0);
    /* A big block may get more than it asked for, where the rest of a mapping is too short for
     * another one. */
    size_t bytes = 0;
    for (int i = 0; i < 20; i++) {
        blocks[i] = i % 2 ? malloc(size) : calloc(1, size);
        bytes += hakmem_usable_size(blocks[i]);
    }
    assert_true(tier == HAKMEM_TIER_BIG ? bytes >= 20 * usable : bytes == 20 * usable);
    look(&full, 0);
    for (int i = 0; i < 20; i++)
        free(blocks[i]);
    look(&end, 0);
    const struct hakmem_usage *before = &start.tier[tier], *now = &full.tier[tier];
    assert_int_equal(now->malloc_calls - before->malloc_calls, 20);
    assert_int_equal(now->live_blocks - before->live_blocks, 20);
    assert_true(now->slabs >= before->slabs);
    assert_int_equal(now->live_bytes - before->live_bytes, bytes);
    assert_true(now->committed_bytes >= now->live_bytes);
    assert_int_equal(end.tier[tier].free_calls - now->free_calls, 20);
    assert_int_equal(end.tier[tier].live_bytes, before->live_bytes);
}

static void large_and_big_blocks_are_counted_exactly(void **state)
{
    (void)state;
    check_page_tier(HAKMEM_TIER_LARGE, 32769, 36864);
    check_page_tier(HAKMEM_TIER_LARGE, 1 << 20, 1 << 20);
    check_page_tier(HAKMEM_TIER_BIG, 3 << 20, 3 << 20);
}

/* realloc in place to another class is a free of the one and a malloc of the other. */
static void blocks_that_change_their_class_are_counted(void **state)
{
    (void)state;
    struct hakmem_stats start, now;
    hakmem_get_stats(&start, sizeof start);
    char *block = malloc(1 << 20);
    char *shorter = realloc(block, 200 << 10);
    assert_ptr_equal(shorter, block);
    hakmem_get_stats(&now, sizeof now);
    assert_int_equal(now.reallocs_in_place - start.reallocs_in_place, 1);
    assert_int_equal(now.live_blocks - start.live_blocks, 1);
    assert_int_equal(now.live_bytes - start.live_bytes, 256 << 10);
    free(shorter);
    hakmem_get_stats(&now, sizeof now);
    assert_int_equal(now.live_blocks, start.live_blocks);
    assert_int_equal(now.live_bytes, start.live_bytes);
}

static void *free_all(void *argument)
{
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    return argument;
}

static void *allocate_all(void *argument)
{
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = malloc(3000); /* no size that pthread_create needs */
    return argument;
}

static pthread_barrier_t all_live;

static void *live_together(void *argument)
{
    free(malloc(50));
    pthread_barrier_wait(&all_live);
    return argument;
}

static long page_faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

/* Most of their heaps are bare: to look into their areas would be some faults each. */
static void many_ended_threads_cost_nothing(void **state)
{
    (void)state;
    enum { THREADS = 600 };
    static pthread_t threads[THREADS];
    pthread_attr_t small;
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, 64 * 1024), 0);
    assert_int_equal(pthread_barrier_init(&all_live, NULL, THREADS + 1), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], &small, live_together, NULL), 0);
    pthread_barrier_wait(&all_live);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    long before = page_faults();
    struct mallinfo2 info = mallinfo2();
    assert_in_range(page_faults() - before, 0, THREADS / 2);
    assert_true(info.uordblks > 0);
    pthread_barrier_destroy(&all_live);
    pthread_attr_destroy(&small);
}

static void threads_that_are_gone_still_count(void **state)
{
    (void)state;
    unsigned index = class_of(3000);
    pthread_t thread;
    struct hakmem_usage start = usage_of(index);
    assert_int_equal(pthread_create(&thread, NULL, allocate_all, NULL), 0);
    pthread_join(thread, NULL);
    struct hakmem_usage full = usage_of(index);
    assert_int_equal(pthread_create(&thread, NULL, free_all, NULL), 0);
    pthread_join(thread, NULL);
    struct hakmem_usage end = usage_of(index);
    assert_int_equal(full.malloc_calls - start.malloc_calls, BLOCKS);
    assert_int_equal(full.live_blocks - start.live_blocks, BLOCKS);
    assert_int_equal(end.free_calls - full.free_calls, BLOCKS);
    assert_int_equal(end.live_blocks, start.live_blocks);
}

static void tiers_are_the_sums_of_their_classes(void **state)
{
    (void)state;
    struct hakmem_usage sum[3] = {{0}}, tier;
    unsigned count = hakmem_class_count();
    size_t last = 0;
    for (unsigned index = 0; index < count; index++) {
        struct hakmem_usage usage;
        size_t size = hakmem_class_size(index);
        assert_true(size > last);
        hakmem_get_class(index, &usage, sizeof usage);
        last = size;
        uint64_t *to = (uint64_t *)&sum[(size > 1024) + (size > 32768)], *from = (uint64_t *)&usage;
        for (size_t i = 0; i < sizeof usage / sizeof *from; i++)
            to[i] += from[i];
        assert_int_equal(usage.live_blocks, usage.malloc_calls - usage.free_calls);
        assert_true(usage.malloc_hits <= usage.malloc_calls);
        assert_true(usage.free_hits <= usage.free_calls);
        assert_true(usage.live_bytes + usage.cached_bytes <= usage.committed_bytes);
    }
    assert_int_equal(last, 2 << 20);
    hakmem_get_tier(HAKMEM_TIER_TINY, &tier, sizeof tier);
    assert_memory_equal(&sum[0], &tier, sizeof sum[0]);
    hakmem_get_tier(HAKMEM_TIER_MID, &tier, sizeof tier);
    assert_memory_equal(&sum[1], &tier, sizeof sum[1]);
    hakmem_get_tier(HAKMEM_TIER_LARGE, &tier, sizeof tier);
    assert_memory_equal(&sum[2], &tier, sizeof sum[2]);
}

static void stats_are_the_sums_of_the_tiers(void **state)
{
    (void)state;
    void *kept[] = {malloc(10), malloc(10000), malloc(100000), malloc(5 << 20)};
    struct hakmem_stats sum = {0};
    assert_int_equal(hakmem_tier_count(), TIERS);
    struct hakmem_stats stats = stats_now();
    for (unsigned tier = 0; tier < hakmem_tier_count(); tier++) {
        struct hakmem_usage usage;
        assert_int_equal(hakmem_get_tier(tier, &usage, sizeof usage), sizeof usage);
        assert_true(usage.live_blocks >= 1);
        sum.live_blocks += usage.live_blocks;
        sum.live_bytes += usage.live_bytes;
        sum.cached_blocks += usage.cached_blocks;
        sum.cached_bytes += usage.cached_bytes;
        sum.malloc_calls += usage.malloc_calls;
        sum.malloc_hits += usage.malloc_hits;
        sum.free_calls += usage.free_calls;
        sum.free_hits += usage.free_hits;
    }
    assert_memory_equal(&sum, &stats, offsetof(struct hakmem_stats, libc_calls));
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        free(kept[i]);
}

/* A burst is freed: what no magazine keeps goes to the transfer caches, and from there home. */
static void blocks_in_transfer_caches_are_counted(void **state)
{
    (void)state;
    enum { COUNT = 6000 };
    static void *blocks[COUNT];
    struct hakmem_usage usage, tier, sum = {0};
    hakmem_purge();
    assert_int_equal(stats_now().transfer_bytes, 0);
    for (int i = 0; i < COUNT; i++)
        blocks[i] = malloc(2000);
    for (int i = 0; i < COUNT; i++)
        free(blocks[i]);
    struct hakmem_stats stats = stats_now();
    size_t bytes = 0;
    for (unsigned index = 0; index < hakmem_class_count(); index++) {
        hakmem_get_class(index, &usage, sizeof usage);
        assert_true(usage.transfer_blocks <= usage.cached_blocks);
        bytes += usage.transfer_blocks * hakmem_class_size(index);
    }
    for (unsigned at = 0; at < hakmem_tier_count(); at++) {
        hakmem_get_tier(at, &tier, sizeof tier);
        sum.transfer_blocks += tier.transfer_blocks;
    }
    assert_true(sum.transfer_blocks > 100);
    assert_int_equal(stats.transfer_bytes, bytes);
    assert_true(bytes <= stats.cached_bytes);
    hakmem_purge();
    assert_int_equal(stats_now().transfer_bytes, 0);
}

/* A burst that comes back soon finds slabs that were kept for it. */
static void empty_slabs_are_counted(void **state)
{
    (void)state;
    enum { COUNT = 6000, ROUNDS = 6 };
    static void *blocks[COUNT];
    struct hakmem_usage tier;
    uint64_t slabs = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++)
            blocks[i] = malloc(3000);
        for (int i = 0; i < COUNT; i++)
            free(blocks[i]);
    }
    struct hakmem_stats stats = stats_now();
    for (unsigned at = 0; at < hakmem_tier_count(); at++) {
        hakmem_get_tier(at, &tier, sizeof tier);
        assert_true(tier.empty_slabs <= tier.slabs);
        slabs += tier.empty_slabs;
    }
    assert_true(slabs > 0);
    assert_true(stats.empty_bytes >= slabs * 65536 && stats.empty_bytes < stats.committed_bytes);
    hakmem_purge();
    assert_int_equal(stats_now().empty_bytes, 0);
}

static void tiers_have_names(void **state)
{
    (void)state;
    assert_string_equal(hakmem_tier_name(HAKMEM_TIER_TINY), "tiny");
    assert_string_equal(hakmem_tier_name(HAKMEM_TIER_MID), "mid");
    assert_string_equal(hakmem_tier_name(HAKMEM_TIER_LARGE), "large");
    assert_string_equal(hakmem_tier_name(HAKMEM_TIER_BIG), "big");
    assert_null(hakmem_tier_name(hakmem_tier_count()));
    assert_null(hakmem_tier_name(~0u));
}

static void totals_fit_together(void **state)
{
    (void)state;
    void *big = malloc(8 << 20), *large = malloc(100000);
    struct hakmem_stats stats = stats_now();
    uint64_t committed = 0;
    for (unsigned tier = 0; tier < hakmem_tier_count(); tier++) {
        struct hakmem_usage usage;
        hakmem_get_tier(tier, &usage, sizeof usage);
        committed += usage.committed_bytes;
    }
    assert_int_equal(stats.committed_bytes, committed);
    assert_true(stats.mapped_bytes >= stats.committed_bytes + stats.retained_bytes);
    assert_true(stats.metadata_bytes > 0 && stats.metadata_bytes < 16 << 20);
    assert_int_equal(stats.threads, 1);
    assert_int_equal(stats.libc_calls, 0);
    assert_true(stats.mmap_calls > 0);
    free(big);
    free(large);
    uint64_t purged = stats_now().purged_bytes;
    size_t said = hakmem_purge();
    assert_true(said >= 8 << 20);
    assert_true(stats_now().purged_bytes - purged >= 8 << 20);
    /* Larger pages are given back only as a whole; what shares one with a block stays. */
    assert_true(stats_now().retained_bytes == 0 || sysconf(_SC_PAGESIZE) > 4096);
}

enum { UNTOUCHED = 0xee };

static bool is_filled(const void *bytes, size_t length, int byte)
{
    const unsigned char *at = bytes;
    while (length > 0 && at[length - 1] == byte)
        length--;
    return length == 0;
}

/* A caller with an older header, which knows less, and one with a newer, which knows more: what
 * `get` fills of a buffer, for every size. `known` is what this library has. */
static void check_sizes(size_t (*get)(void *, size_t), size_t known)
{
    unsigned char whole[1024], some[1024];
    assert_true(known + 100 <= sizeof some);
    assert_int_equal(get(whole, known), known);
    for (size_t size = 0; size <= known + 64; size += 8) {
        size_t shared = size < known ? size : known;
        memset(some, UNTOUCHED, sizeof some);
        assert_int_equal(get(some, size), shared);
        assert_memory_equal(some, whole, shared);
        assert_true(is_filled(some + shared, size - shared, 0));
        assert_true(is_filled(some + size, sizeof some - size, UNTOUCHED));
    }
}

static size_t get_stats(void *to, size_t size)
{
    return hakmem_get_stats(to, size);
}

static size_t get_tier(void *to, size_t size)
{
    return hakmem_get_tier(HAKMEM_TIER_MID, to, size);
}

static size_t get_class(void *to, size_t size)
{
    return hakmem_get_class(3, to, size);
}

static size_t get_no_tier(void *to, size_t size)
{
    return hakmem_get_tier(hakmem_tier_count(), to, size);
}

static size_t get_no_class(void *to, size_t size)
{
    return hakmem_get_class(hakmem_class_count(), to, size);
}

static void callers_of_every_age_are_served(void **state)
{
    (void)state;
    struct hakmem_usage usage;
    check_sizes(get_stats, sizeof(struct hakmem_stats));
    check_sizes(get_tier, sizeof(struct hakmem_usage));
    check_sizes(get_class, sizeof(struct hakmem_usage));
    check_sizes(get_no_tier, 0);
    check_sizes(get_no_class, 0);
    assert_int_equal(hakmem_get_tier(~0u, &usage, sizeof usage), 0);
    assert_int_equal(hakmem_get_class(~0u, &usage, sizeof usage), 0);
    assert_int_equal(hakmem_class_size(0), 16);
    assert_int_equal(hakmem_class_size(hakmem_class_count()), 0);
    assert_int_equal(hakmem_class_size(~0u), 0);
}

static uint64_t number_at(const char *json, const char *path)
{
    uint64_t value = 0;
    if (!json_number(json, path, &value))
        fail_msg("no number at %s", path);
    return value;
}

static void json_says_what_the_structs_say(void **state)
{
    (void)state;
    static char json[128 * 1024];
    char path[64];
    struct hakmem_stats stats = stats_now();
    struct look now;
    look(&now, 0);
    size_t length = hakmem_stats_json(json, sizeof json);
    assert_int_equal(strlen(json), length);
    assert_true(json_is_valid(json));
    assert_int_equal(number_at(json, "format"), 1);
    assert_int_equal(number_at(json, "tiers.tiny.malloc_calls"), now.tier[0].malloc_calls);
    assert_int_equal(number_at(json, "tiers.mid.free_calls"), now.tier[1].free_calls);
    assert_int_equal(number_at(json, "tiers.large.live_bytes"), now.tier[2].live_bytes);
    assert_int_equal(number_at(json, "tiers.big.committed_bytes"), now.tier[3].committed_bytes);
    assert_int_equal(number_at(json, "mapped_bytes"), stats.mapped_bytes);
    assert_int_equal(number_at(json, "purged_bytes"), stats.purged_bytes);
    assert_int_equal(number_at(json, "threads"), stats.threads);
    assert_int_equal(number_at(json, "transfer_bytes"), stats.transfer_bytes);
    assert_int_equal(number_at(json, "empty_bytes"), stats.empty_bytes);
    assert_int_equal(number_at(json, "tiers.mid.transfer_blocks"), now.tier[1].transfer_blocks);
    assert_int_equal(number_at(json, "syscalls.mmap"), stats.mmap_calls);
    for (unsigned index = 0; index < hakmem_class_count(); index++) {
        struct hakmem_usage usage;
        size_t size = hakmem_class_size(index);
        hakmem_get_class(index, &usage, sizeof usage);
        snprintf(path, sizeof path, "classes.%u.size", index);
        assert_int_equal(number_at(json, path), size);
        snprintf(path, sizeof path, "classes.%u.malloc_calls", index);
        assert_int_equal(number_at(json, path), usage.malloc_calls);
    }
    uint64_t value;
    snprintf(path, sizeof path, "classes.%u.size", hakmem_class_count());
    assert_false(json_number(json, path, &value));
    long option;
    assert_int_equal(hakmem_option_get("purge_delay_ms", &option), 0);
    assert_int_equal(number_at(json, "options.purge_delay_ms"), option);
}

static void json_is_cut_at_the_capacity(void **state)
{
    (void)state;
    static char json[128 * 1024];
    size_t whole = hakmem_stats_json(NULL, 0);
    size_t capacities[] = {1, 2, 100, whole, whole + 1};
    for (size_t i = 0; i < sizeof capacities / sizeof *capacities; i++) {
        memset(json, '#', sizeof json);
        assert_int_equal(hakmem_stats_json(json, capacities[i]), whole);
        size_t stored = capacities[i] <= whole ? capacities[i] - 1 : whole;
        assert_int_equal(strlen(json), stored);
        assert_int_equal(json[capacities[i]], '#');
        assert_int_equal(json_is_valid(json), capacities[i] > whole);
    }
}

/* The checker itself must be able to say no. */
static void the_checker_refuses_what_is_not_json(void **state)
{
    (void)state;
    static const char *const good[] = {"{}", "[1,-2,0]", "{\"a\":{\"b\":[true,null,\"x\"]}} \n"};
    static const char *const bad[] = {"",           "{",     "{\"a\":}", "{\"a\" 1}", "[1,]",
                                      "{\"a\":1,}", "{} {}", "01",       "\"x",       "[1 2]",
                                      "{a:1}",      "nullx", "{\"a\":1]"};
    uint64_t value;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(json_is_valid(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(json_is_valid(bad[i]));
    assert_true(json_number("{\"a\":[5,{\"bc\":77}]}", "a.1.bc", &value));
    assert_int_equal(value, 77);
    assert_false(json_number("{\"a\":[5,{\"bc\":77}]}", "a.1.b", &value));
    assert_false(json_number("{\"a\":[5,{\"bc\":77}]}", "a.2", &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_counted_exactly),
        cmocka_unit_test(hits_are_the_rule),
        cmocka_unit_test(large_and_big_blocks_are_counted_exactly),
        cmocka_unit_test(blocks_that_change_their_class_are_counted),
        cmocka_unit_test(threads_that_are_gone_still_count),
        cmocka_unit_test(tiers_are_the_sums_of_their_classes),
        cmocka_unit_test(totals_fit_together),
        cmocka_unit_test(stats_are_the_sums_of_the_tiers),
        cmocka_unit_test(blocks_in_transfer_caches_are_counted),
        cmocka_unit_test(empty_slabs_are_counted),
        cmocka_unit_test(tiers_have_names),
        cmocka_unit_test(callers_of_every_age_are_served),
        cmocka_unit_test(the_checker_refuses_what_is_not_json),
        cmocka_unit_test(json_says_what_the_structs_say),
        cmocka_unit_test(json_is_cut_at_the_capacity),
        /* Last, since areas of heaps count as metadata. */
        cmocka_unit_test(many_ended_threads_cost_nothing),
    };
    if (strcmp(hakmem_version(), HAKMEM_VERSION) != 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
