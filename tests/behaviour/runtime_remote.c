/* Blocks that outlive their thread and blocks freed by a thread that did not allocate them: all
 * of them are reclaimed, and a thread that only frees does not grow the heap (behaviour 35).
 */
#include "runtime_support.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#include <hakmem/hakmem.h>

#define MAX_BLOCKS 100000
#define RING 1024

/* One size of block in enough of them to fill `kib` KiB, or random sizes when `size` is 0. */
struct load {
    size_t size;
    unsigned count;
    uint32_t seed;
};

static void *blocks[MAX_BLOCKS];
static size_t sizes[MAX_BLOCKS];

static size_t load_size(struct load *load)
{
    return load->size != 0 ? load->size : random_size(&load->seed) % 60000;
}

static void *filling_main(void *argument)
{
    struct load *load = argument;
    for (unsigned i = 0; i < load->count; i++) {
        sizes[i] = load_size(load);
        blocks[i] = malloc(sizes[i]);
        REQUIRE(blocks[i] != NULL);
        pattern_fill(blocks[i], sizes[i], i);
    }
    return NULL;
}

static void *emptying_main(void *argument)
{
    struct load *load = argument;
    for (unsigned i = 0; i < load->count; i++) {
        REQUIRE(pattern_holds(blocks[i], sizes[i], i));
        free(blocks[i]);
    }
    return NULL;
}

static void run_thread(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, body, argument) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
}

/* Fills in one thread, empties in another, again and again: the memory must be reused. Heaps may
 * keep the blocks of a round each, or have given them back just when that was looked at: a few
 * rounds. What is not reused is that of twenty. */
static void check_reclaimed(struct load load, bool freed_by_main)
{
    long resident = 0;
    for (unsigned round = 0; round < 24; round++) {
        run_thread(filling_main, &load);
        if (freed_by_main) {
            emptying_main(&load);
        } else {
            run_thread(emptying_main, &load);
        }
        if (round == 3) {
            resident = resident_kib();
        }
    }
    long growth = resident_kib() - resident;
    print_message("%u blocks of %zu: resident %+ld KiB\n", load.count, load.size, growth);
    assert_true(growth < 3 * 1024 + 4 * (long)(load.count * load.size / 1024));
}

/* behaviour 35 */
static void test_blocks_outlive_their_thread(void **state)
{
    (void)state;
    watchdog(HANG_SECONDS, "blocks that outlive their thread");
    const struct load loads[] = {{16, 100000, 1}, {200, 40000, 2}, {3000, 3000, 3},
                                 {30000, 300, 4}, {500000, 20, 5}, {3000000, 4, 6}};
    for (unsigned i = 0; i < sizeof loads / sizeof loads[0]; i++) {
        check_reclaimed(loads[i], true);
        check_reclaimed(loads[i], false);
    }
    watchdog(0, "");
}

/* A ring between one producer and one consumer; both yield when they must wait. */
struct ring {
    _Atomic(void *) slots[RING];
    struct load load;
    unsigned passed;
    atomic_bool consumer_done;
};

static void *producing_main(void *argument)
{
    struct ring *ring = argument;
    for (unsigned i = 0; i < ring->passed; i++) {
        size_t size = load_size(&ring->load);
        unsigned char *block = malloc(size + 1);
        REQUIRE(block != NULL);
        block[0] = (unsigned char)i;
        block[size] = (unsigned char)i;
        while (atomic_load_explicit(&ring->slots[i % RING], memory_order_acquire) != NULL) {
            sched_yield();
        }
        atomic_store_explicit(&ring->slots[i % RING], block, memory_order_release);
    }
    /* Stays alive until all its blocks are freed, so that nothing is reclaimed by its exit. */
    while (!atomic_load(&ring->consumer_done)) {
        sched_yield();
    }
    return NULL;
}

static void consume(struct ring *ring)
{
    long resident = 0;
    for (unsigned i = 0; i < ring->passed; i++) {
        unsigned char *block;
        while ((block = atomic_load_explicit(&ring->slots[i % RING], memory_order_acquire)) ==
               NULL) {
            sched_yield();
        }
        REQUIRE(block[0] == (unsigned char)i);
        atomic_store_explicit(&ring->slots[i % RING], NULL, memory_order_release);
        free(block);
        if (i == ring->passed / 4) {
            resident = resident_kib();
        }
    }
    long growth = resident_kib() - resident;
    atomic_store(&ring->consumer_done, true);
    print_message(
        "%u blocks of %zu through a ring: resident %+ld KiB\n", ring->passed, ring->load.size,
        growth);
    /* At most the ring's content is alive; half of it again may wait in caches. */
    long ring_kib = (long)(RING * ring->load.size / 1024);
    REQUIRE(growth < 3 * 1024 + ring_kib + ring_kib / 2);
}

static void *consuming_main(void *argument)
{
    consume(argument);
    return NULL;
}

static void check_ring(struct load load, unsigned passed)
{
    static struct ring ring;
    pthread_t producer;
    pthread_t consumer;
    memset(&ring, 0, sizeof ring);
    ring.load = load;
    ring.passed = passed;
    REQUIRE(pthread_create(&producer, NULL, producing_main, &ring) == 0);
    REQUIRE(pthread_create(&consumer, NULL, consuming_main, &ring) == 0);
    REQUIRE(pthread_join(consumer, NULL) == 0);
    REQUIRE(pthread_join(producer, NULL) == 0);
}

/* behaviour 35 */
static void test_thread_that_only_frees(void **state)
{
    (void)state;
    watchdog(HANG_SECONDS, "a thread that only frees");
    check_ring((struct load){.size = 64}, 1500000);
    check_ring((struct load){.size = 1000}, 600000);
    check_ring((struct load){.size = 10000}, 200000);
    check_ring((struct load){.size = 100000}, 20000);
    check_ring((struct load){.size = 0, .seed = 7}, 100000);
    watchdog(0, "");
}

/* behaviour 35: the statistics, too, come back to where they were. */
static void test_nothing_stays_live(void **state)
{
    (void)state;
    enum { TIERS = HAKMEM_TIER_BIG + 1 };
    struct hakmem_usage before[TIERS], after[TIERS];
    struct load load = {.seed = 11, .count = 5000};
    for (unsigned tier = 0; tier < TIERS; tier++)
        hakmem_get_tier(tier, &before[tier], sizeof before[tier]);
    run_thread(filling_main, &load);
    struct load again = {.count = 5000};
    run_thread(emptying_main, &again);
    uint64_t freed = 0;
    for (unsigned tier = 0; tier < TIERS; tier++) {
        hakmem_get_tier(tier, &after[tier], sizeof after[tier]);
        /* The C library keeps some blocks for threads. */
        assert_in_range(after[tier].live_blocks, 0, before[tier].live_blocks + 16);
        freed += after[tier].free_calls - before[tier].free_calls;
    }
    assert_in_range(freed, load.count, load.count + 100);
}

int main(void)
{
    (void)hakmem_version();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_outlive_their_thread),
        cmocka_unit_test(test_thread_that_only_frees),
        cmocka_unit_test(test_nothing_stays_live),
    };
    return cmocka_run_group_tests_name("runtime_remote", tests, NULL, NULL);
}
