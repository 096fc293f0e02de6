/* trace/sample: sampling that an observer of the probe turns on and off. The kernel's part, the
 * counter of those who are attached, is played here. */
#include "unit.h"

#include <pthread.h>

#include "api/alloc.h"
#include "base/probe.h"
#include "slab/shard.h"
#include "trace/due.h"
#include "trace/sample.h"
#include "trace/site.h"

static const size_t observed_mean = 512 * KIB;

static void attach(int change)
{
    ATOMIC_STORE_RELAXED(
        &otel_memory_alloc_semaphore, (uint16_t)(otel_memory_alloc_semaphore + change));
}

/* A slow path. */
static void miss(void)
{
    release(alloc((size_t)3 << 20));
}

static uint64_t samples(void)
{
    uint64_t sum = 0;
    for (const struct site *site = site_newest(); site; site = site->next)
        sum += site->born_samples;
    return sum;
}

static void use(size_t bytes)
{
    for (size_t done = 0; done < bytes; done += 1000)
        release(alloc(1000));
}

/* The first call may come before the options are known, also with a profiler attached. */
static void begin_before_options_are_known(void *unused)
{
    (void)unused;
    heap_leave(heap_enter());
    shard_init(3);
    unsigned before = shard_of_heap(2);
    shard_init(1);
    attach(1);
    miss();
    CHECK(due_mean() == observed_mean);
    shard_init(SHARD_MAX);
    for (unsigned i = 0; i < SHARD_MAX; i++) {
        /* The record of a slab of samples so short would be too long. */
        CHECK(slab_create(size_class_of(16), shard_of_heap(i), 1, true));
        CHECK(!slab_shard_is_sampled(shard_of_heap(i)));
    }
    CHECK(before == 2 && slab_samples_shard > before);
}

static void no_heap_gets_the_shard_of_samples(void **state)
{
    (void)state;
    unit_in_child(begin_before_options_are_known, NULL);
}

static void it_lasts_as_long_as_somebody_is_attached(void **state)
{
    (void)state;
    use(64 * MIB);
    assert_int_equal(samples(), 0);
    attach(1);
    miss();
    assert_int_equal(due_mean(), observed_mean);
    uint64_t before = samples();
    use(128 * MIB);
    CHECK(samples() > before + 128 && samples() < before + 512);
    attach(1);
    attach(-1);
    miss();
    assert_int_equal(due_mean(), observed_mean);
    attach(-1);
    miss();
    assert_int_equal(due_mean(), 0);
    before = samples();
    use(64 * MIB);
    assert_int_equal(samples(), before);
}

static void a_program_that_hits_notices_too(void **state)
{
    (void)state;
    use(MIB);
    attach(1);
    use(8 * MIB);
    assert_int_equal(due_mean(), observed_mean);
    attach(-1);
    use(8 * MIB);
    assert_int_equal(due_mean(), 0);
}

static void no_stacks_are_taken_for_it(void **state)
{
    (void)state;
    for (const struct site *site = site_newest(); site; site = site->next)
        assert_true(site->frames <= 1);
}

static void what_the_options_ask_for_stays(void **state)
{
    (void)state;
    assert_true(sample_set_mean(MIB));
    attach(1);
    miss();
    assert_int_equal(due_mean(), MIB);
    attach(-1);
    miss();
    assert_int_equal(due_mean(), MIB);
    assert_true(sample_set_mean(0));
    attach(1);
    miss();
    assert_int_equal(due_mean(), observed_mean);
    /* The option is set while somebody is attached. */
    assert_true(sample_set_mean(observed_mean));
    attach(-1);
    miss();
    assert_int_equal(due_mean(), observed_mean);
    assert_true(sample_set_mean(0));
    assert_int_equal(due_mean(), 0);
}

static uint64_t sampled_by_thread;

static void *wait_and_use(void *barrier)
{
    use(MIB);
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    /* Large blocks, of which 4096 would take long. */
    uint64_t before = samples();
    for (int i = 0; i < 400; i++)
        release(alloc(MIB));
    sampled_by_thread = samples() - before;
    return NULL;
}

static void threads_that_were_there_begin_at_once(void **state)
{
    (void)state;
    pthread_t thread;
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, wait_and_use, &barrier);
    pthread_barrier_wait(&barrier);
    attach(1);
    miss();
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    attach(-1);
    miss();
    CHECK(sampled_by_thread > 250);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_heap_gets_the_shard_of_samples),
        cmocka_unit_test(it_lasts_as_long_as_somebody_is_attached),
        cmocka_unit_test(a_program_that_hits_notices_too),
        cmocka_unit_test(no_stacks_are_taken_for_it),
        cmocka_unit_test(what_the_options_ask_for_stays),
        cmocka_unit_test(threads_that_were_there_begin_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
