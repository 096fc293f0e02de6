/* os/lock_profile and observe/locks: what a build that profiles its locks counts at them. */
#include "unit.h"

#include <pthread.h>
#include <time.h>

#include "os/lock.h"
#include "os/os.h"
#include "os/ticks.h"
#include "report/locks.h"
#include "slab/shard.h"
#include "span/page_heap.h"

static void sleep_ms(long milliseconds)
{
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static void hold_ns(struct lock *lock, uint64_t ns)
{
    lock_acquire(lock);
    for (uint64_t since = os_clock_ns(); os_clock_ns() < since + ns;)
        continue;
    lock_release(lock);
}

static void acquisitions_are_counted(void **state)
{
    (void)state;
    struct lock lock = {0};
    for (int i = 0; i < 1000; i++)
        hold_ns(&lock, 0);
    assert_int_equal(lock.profile->acquisitions, 1000);
    assert_int_equal(lock.profile->waits, 0);
    assert_int_equal(lock.profile->handovers, 0);
    assert_int_equal(lock.profile->waited_ticks, 0);
}

/* The machine may take the processor from the test in the middle of each hold, but not of all. */
static void the_time_of_holds_is_measured(void **state)
{
    (void)state;
    enum { ROUNDS = 200, HELD_NS = 20000 };
    struct lock lock = {0};
    for (int i = 0; i < ROUNDS; i++)
        hold_ns(&lock, HELD_NS);
    uint64_t whole = ROUNDS - lock.profile->interrupted;
    uint64_t held_ns = ticks_ns(lock.profile->held_ticks);
    assert_true(whole > 0);
    assert_in_range(held_ns, whole * HELD_NS * 9 / 10, whole * 5 * HELD_NS);
}

static void a_long_hold_counts_as_interrupted(void **state)
{
    (void)state;
    struct lock lock = {0};
    lock_acquire(&lock);
    sleep_ms(2);
    lock_release(&lock);
    assert_int_equal(lock.profile->acquisitions, 1);
    assert_int_equal(lock.profile->interrupted, 1);
    assert_int_equal(lock.profile->held_ticks, 0);
}

static void *take(void *lock)
{
    hold_ns(lock, 0);
    return NULL;
}

static void take_elsewhere(struct lock *lock)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, take, lock), 0);
    pthread_join(thread, NULL);
}

/* Who takes the lock again has not met anybody there. */
static void threads_that_meet_are_counted(void **state)
{
    (void)state;
    struct lock lock = {0};
    for (int i = 0; i < 5; i++) {
        take_elsewhere(&lock);
        hold_ns(&lock, 0);
        hold_ns(&lock, 0);
    }
    assert_int_equal(lock.profile->acquisitions, 15);
    assert_int_equal(lock.profile->handovers, 9);
    assert_int_equal(lock.profile->waits, 0);
}

static void the_time_of_waits_is_measured(void **state)
{
    (void)state;
    struct lock lock = {0};
    pthread_t thread;
    uint64_t before = ATOMIC_LOAD_RELAXED(&os_counts[OS_FUTEX]);
    lock_acquire(&lock);
    assert_int_equal(pthread_create(&thread, NULL, take, &lock), 0);
    while (ATOMIC_LOAD_RELAXED(&os_counts[OS_FUTEX]) == before)
        sleep_ms(1);
    sleep_ms(5);
    lock_release(&lock);
    pthread_join(thread, NULL);
    assert_int_equal(lock.profile->waits, 1);
    assert_true(ticks_ns(lock.profile->waited_ticks) >= 5000000);
}

static void the_profile_knows_what_it_costs(void **state)
{
    (void)state;
    assert_in_range(locks_profile_cost_ps(), 1000, 10000000);
}

/* The busiest lock of a kind and the one at which threads meet may be two. */
static void locks_of_a_kind_are_summed_up(void **state)
{
    (void)state;
    struct lock_kind_usage usage;
    shard_init(2);
    assert_int_equal(shard_of_heap(0), 0);
    assert_int_equal(shard_of_heap(1), 1);
    assert_int_equal(shard_of_heap(1), 1);
    struct lock *busy = &bin_of(0, 3)->lock, *met = &bin_of(1, 5)->lock;
    for (int i = 0; i < 100; i++)
        hold_ns(busy, 20000);
    take_elsewhere(met);
    hold_ns(met, 0);
    locks_collect(LOCK_BIN, &usage);
    assert_int_equal(usage.parts, SHARD_MAX);
    assert_int_equal(usage.locks, 2);
    assert_int_equal(usage.all.acquisitions, 102);
    assert_int_equal(usage.all.handovers, 1);
    assert_int_equal(usage.busy.acquisitions, 100);
    assert_int_equal(usage.met.acquisitions, 2);
    assert_true(usage.all.held_ns >= usage.busy.held_ns + usage.met.held_ns);
    locks_collect(LOCK_BIG, &usage);
    assert_int_equal(usage.locks, 0);
    assert_int_equal(usage.all.acquisitions, 0);
    locks_collect(LOCK_PAGE_HEAP, &usage);
    assert_int_equal(usage.parts, SHARD_PARTS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acquisitions_are_counted),
        cmocka_unit_test(the_time_of_holds_is_measured),
        cmocka_unit_test(a_long_hold_counts_as_interrupted),
        cmocka_unit_test(threads_that_meet_are_counted),
        cmocka_unit_test(the_time_of_waits_is_measured),
        cmocka_unit_test(the_profile_knows_what_it_costs),
        cmocka_unit_test(locks_of_a_kind_are_summed_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
