/* os/cycles: spans in spans, sides, histograms, and the trace. Built with HAKMEM_DEBUG=1. */
#include "unit.h"

#include <pthread.h>
#include <sys/resource.h>

#include "map/metadata.h"
#include "observe/lock_kinds.h"
#include "os/cycles.h"
#include "os/syscall.h"
#include "os/ticks.h"
#include "slab/shard.h"
#include "span/big_cache.h"
#include "span/page_heap.h"
#include "thread/registry.h"

static bool held; /* atomic, any thread */

static struct cycles_counts counts_of(enum cycles_side side, enum cycles_kind kind)
{
    struct cycles_counts counts;
    cycles_collect(side, kind, &counts);
    return counts;
}

static void pass(uint64_t ticks)
{
    uint64_t end = cpu_ticks() + ticks;
    while (cpu_ticks() < end)
        cpu_relax();
}

/* A call with a refill in it, in which a lock is waited for; returns the ticks of the call. */
static uint64_t call_with_refill(enum cycles_side side)
{
    struct cycles_span call, refill, wait;
    cycles_begin(&call, CYCLES_CALL, side, 100);
    pass(100000);
    cycles_begin(&refill, CYCLES_REFILL_BINS, CYCLES_SAME, 100);
    pass(200000);
    cycles_begin(&wait, CYCLES_LOCK_WAIT, CYCLES_SAME, 0);
    pass(400000);
    cycles_end(&wait);
    cycles_end(&refill);
    return cycles_end(&call);
}

static void nothing_is_counted_unless_asked_for(void **state)
{
    (void)state;
    assert_int_equal(call_with_refill(CYCLES_MALLOC), 0);
    assert_int_equal(counts_of(CYCLES_MALLOC, CYCLES_CALL).count, 0);
}

static void count_without_memory(void *unused)
{
    (void)unused;
    const struct rlimit nothing = {0, 0};
    setrlimit(RLIMIT_AS, &nothing);
    ATOMIC_STORE_RELAXED(&policy.cycles, 1);
    CHECK(call_with_refill(CYCLES_MALLOC) == 0);
    CHECK(policy.cycles == 0 && counts_of(CYCLES_MALLOC, CYCLES_CALL).count == 0);
}

static void without_memory_it_is_off(void **state)
{
    (void)state;
    char output[256];
    assert_int_equal(unit_run_child(count_without_memory, NULL, output, sizeof output), 0);
    assert_string_equal(
        output, "hakmem: option cycles: there is no memory to count them in; it is 0 now\n");
}

static void own_times_add_up(void **state)
{
    (void)state;
    ATOMIC_STORE_RELAXED(&policy.cycles, 1);
    uint64_t ticks = 0;
    for (int i = 0; i < 10; i++)
        ticks += call_with_refill(CYCLES_FREE);
    ATOMIC_STORE_RELAXED(&policy.cycles, 0);
    struct cycles_counts call = counts_of(CYCLES_FREE, CYCLES_CALL);
    struct cycles_counts refill = counts_of(CYCLES_FREE, CYCLES_REFILL_BINS);
    struct cycles_counts wait = counts_of(CYCLES_FREE, CYCLES_LOCK_WAIT);
    assert_int_equal(call.count, 10);
    assert_int_equal(refill.count, 10);
    assert_int_equal(call.total, ticks);
    assert_true(call.own >= 1000000 && refill.own >= 2000000 && wait.own >= 4000000);
    assert_int_equal(wait.own, wait.total);
    assert_int_equal(refill.own + wait.total, refill.total);
    assert_int_equal(call.own + refill.own + wait.own, ticks);
    assert_true(call.max >= 700000 && call.max <= ticks);
    assert_int_equal(counts_of(CYCLES_MALLOC, CYCLES_REFILL_BINS).count, 0);
}

static void histograms_have_a_place_for_each_power_of_two(void **state)
{
    (void)state;
    struct cycles_counts wait = counts_of(CYCLES_FREE, CYCLES_LOCK_WAIT);
    uint64_t sum = 0, least = 0, most = 0;
    for (unsigned i = 0; i < CYCLES_BUCKETS; i++) {
        sum += wait.buckets[i];
        least += i ? wait.buckets[i] << (i - 1) : 0;
        most += wait.buckets[i] << i;
    }
    assert_int_equal(sum, wait.count);
    assert_true(least <= wait.total && wait.total < most);
}

static void what_is_in_no_call_is_of_no_side(void **state)
{
    (void)state;
    struct cycles_span span;
    ATOMIC_STORE_RELAXED(&policy.cycles, 1);
    call_with_refill(CYCLES_MALLOC);
    cycles_begin(&span, CYCLES_PURGE, CYCLES_SAME, 0);
    cycles_end(&span);
    ATOMIC_STORE_RELAXED(&policy.cycles, 0);
    assert_int_equal(counts_of(CYCLES_OTHER, CYCLES_PURGE).count, 1);
    assert_int_equal(counts_of(CYCLES_MALLOC, CYCLES_PURGE).count, 0);
}

static void what_begins_while_it_is_off_is_not_counted(void **state)
{
    (void)state;
    struct cycles_span span;
    cycles_begin(&span, CYCLES_MOVE, CYCLES_MALLOC, 0);
    ATOMIC_STORE_RELAXED(&policy.cycles, 1);
    assert_int_equal(cycles_end(&span), 0);
    ATOMIC_STORE_RELAXED(&policy.cycles, 0);
    assert_int_equal(counts_of(CYCLES_MALLOC, CYCLES_MOVE).count, 0);
}

static void *work(void *unused)
{
    for (int i = 0; i < 1000; i++) {
        struct cycles_span span;
        cycles_begin(&span, CYCLES_FLUSH, CYCLES_FREE, 0);
        cycles_end(&span);
    }
    return unused;
}

static void threads_lose_no_count(void **state)
{
    (void)state;
    pthread_t threads[16];
    ATOMIC_STORE_RELAXED(&policy.cycles, 1);
    for (int i = 0; i < 16; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 16; i++)
        pthread_join(threads[i], NULL);
    ATOMIC_STORE_RELAXED(&policy.cycles, 0);
    assert_int_equal(counts_of(CYCLES_FREE, CYCLES_FLUSH).count, 16000);
}

static void ticks_are_of_some_length(void **state)
{
    (void)state;
    ticks_start();
    pass(20000000);
    uint64_t ns = ticks_ns(1000000000);
    assert_true(ns > 10000000 && ns < 1000000000000);
}

/* Until somebody waits for it, and for a while then. */
static void *hold(void *unused)
{
    lock_acquire(metadata_lock());
    ATOMIC_STORE_RELEASE(&held, true);
    while (!(ATOMIC_LOAD_RELAXED(&metadata_lock()->word) & LOCK_WAITERS))
        usleep(1000);
    usleep(20000);
    lock_release(metadata_lock());
    return unused;
}

static void waits_are_counted_by_kind_of_lock(void **state)
{
    (void)state;
    pthread_t thread;
    struct lock_waits waits, registry;
    lock_kinds_start();
    ATOMIC_STORE_RELAXED(&policy.cycles, 1);
    pthread_create(&thread, NULL, hold, NULL);
    while (!ATOMIC_LOAD_ACQUIRE(&held))
        cpu_relax();
    lock_acquire(metadata_lock());
    lock_release(metadata_lock());
    pthread_join(thread, NULL);
    lock_acquire(heap_registry_lock());
    lock_release(heap_registry_lock());
    ATOMIC_STORE_RELAXED(&policy.cycles, 0);
    lock_acquire(heap_registry_lock());
    lock_release(heap_registry_lock());
    lock_kinds_collect(LOCK_METADATA, &waits);
    lock_kinds_collect(LOCK_REGISTRY, &registry);
    assert_int_equal(waits.acquisitions, 2);
    assert_int_equal(waits.waits, 1);
    assert_true(ticks_ns(waits.waited_ticks) > 5000000);
    assert_int_equal(registry.acquisitions, 1);
    assert_int_equal(registry.waits, 0);
}

static void each_lock_has_its_kind(void **state)
{
    (void)state;
    struct lock *const locks[LOCK_KINDS] = {
        [LOCK_BIN] = &bin_of(0, CLASS_COUNT - 1)->lock,
        [LOCK_TRANSFER] = &transfer_of(0, 0)->lock,
        [LOCK_PAGE_HEAP] = page_heap_lock(page_heap_parts() - 1),
        [LOCK_BIG] = big_lock(0),
        [LOCK_METADATA] = metadata_lock(),
        [LOCK_REGISTRY] = heap_registry_lock()};
    ATOMIC_STORE_RELAXED(&policy.cycles, 1);
    for (enum lock_kind kind = 0; kind < LOCK_KINDS; kind++) {
        struct lock_waits before, after;
        lock_kinds_collect(kind, &before);
        lock_acquire(locks[kind]);
        lock_release(locks[kind]);
        lock_kinds_collect(kind, &after);
        assert_int_equal(after.acquisitions, before.acquisitions + 1);
    }
    ATOMIC_STORE_RELAXED(&policy.cycles, 0);
}

static void trace_a_call(void *unused)
{
    (void)unused;
    cycles_trace = true;
    call_with_refill(CYCLES_MALLOC);
}

static void the_trace_has_a_line_a_span(void **state)
{
    (void)state;
    char output[1024];
    unsigned thread;
    unsigned long ticks;
    int end = 0;
    assert_int_equal(unit_run_child(trace_a_call, NULL, output, sizeof output), 0);
    sscanf(
        output,
        "hakmem: trace: thread %u, malloc: lock_wait, %lu ticks\n"
        "hakmem: trace: thread %*u, malloc: refill_bins of 100 bytes, %*u ticks\n"
        "hakmem: trace: thread %*u, malloc: call of 100 bytes, %*u ticks\n%n",
        &thread, &ticks, &end);
    assert_int_equal(end, strlen(output));
    assert_true(end > 0 && ticks >= 400000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_counted_unless_asked_for),
        cmocka_unit_test(without_memory_it_is_off),
        cmocka_unit_test(own_times_add_up),
        cmocka_unit_test(histograms_have_a_place_for_each_power_of_two),
        cmocka_unit_test(what_is_in_no_call_is_of_no_side),
        cmocka_unit_test(what_begins_while_it_is_off_is_not_counted),
        cmocka_unit_test(threads_lose_no_count),
        cmocka_unit_test(ticks_are_of_some_length),
        cmocka_unit_test(waits_are_counted_by_kind_of_lock),
        cmocka_unit_test(each_lock_has_its_kind),
        cmocka_unit_test(the_trace_has_a_line_a_span),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
