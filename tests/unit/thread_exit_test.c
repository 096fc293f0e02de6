/* thread/heap: exit and adoption of heaps, fork (behaviours 31, 33, 34, 35). */
#include "unit.h"

#include <pthread.h>

#include "api/alloc.h"
#include "checks/checks.h"
#include "os/os.h"
#include "report/stats.h"
#include "slab/shard.h"
#include "slab/sweep.h"
#include "slab/transfer.h"
#include "span/page_heap.h"
#include "thread/registry.h"

enum { THREADS = 6, BLOCKS = 500 };

static unsigned heaps_made(void)
{
    unsigned count = 0;
    for (const struct heap *heap = heap_first(); heap; heap = heap->next)
        count++;
    return count;
}

static unsigned heaps_in_use(void)
{
    unsigned count = 0;
    for (const struct heap *heap = heap_first(); heap; heap = heap->next)
        count += heap_in_use(heap);
    return count;
}

static void run_thread(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, function, argument) == 0);
    pthread_join(thread, NULL);
}

/* Little enough that one superslab holds it and nothing is purged when it is freed. */
static void use_some(void)
{
    void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        size_t size = (size_t)(i % 8 * 150 + 1);
        blocks[i] = alloc(size);
        CHECK(blocks[i]);
        memset(blocks[i], 1, size);
    }
    for (int i = 0; i < BLOCKS; i++)
        release(blocks[i]);
    struct heap *mine = heap_enter(); /* else whoever drains idle heaps may change it meanwhile */
    heap_check(mine);
    heap_leave(mine);
}

/* Empties what threads that exited left in their heaps, and the transfer caches. */
static void return_everything(void)
{
    registry_flush_pool();
    transfer_drain(SIZE_MAX);
    sweep_purge(SIZE_MAX);
}

static void *use_and_tell(void *result)
{
    use_some();
    *(struct heap **)result = heap_of_thread();
    return NULL;
}

static void a_heap_is_adopted_by_the_next_thread(void **state)
{
    (void)state;
    struct heap *first = NULL, *next = NULL;
    run_thread(use_and_tell, &first);
    assert_non_null(first);
    unsigned made = heaps_made();
    uint64_t maps = os_counts[OS_MMAP];
    for (int i = 0; i < 100; i++) {
        run_thread(use_and_tell, &next);
        assert_ptr_equal(next, first);
    }
    assert_false(heap_in_use(first));
    assert_int_equal(heaps_made(), made);
    assert_int_equal(os_counts[OS_MMAP], maps);
    assert_int_equal(heaps_in_use(), 0);
    return_everything();
    for (unsigned size_class = 1; size_class < CLASS_COUNT; size_class++)
        assert_int_equal(heap_cached_blocks(first, size_class), 0);
    assert_int_equal(page_heap_stats().used_pages, 0);
}

/* As many heaps as there are shards wait with their blocks for the next thread; two ticks of the
 * purge without one, and they are empty. */
static void pooled_heaps_keep_their_blocks_for_a_while(void **state)
{
    (void)state;
    struct heap *kept = NULL;
    unsigned size_class = size_class_of(151);
    run_thread(use_and_tell, &kept);
    assert_true(heap_cached_blocks(kept, size_class) > 0);
    registry_look_at_pool();
    assert_false(registry_step_in_pool());
    assert_true(heap_cached_blocks(kept, size_class) > 0);
    registry_look_at_pool();
    while (registry_step_in_pool())
        continue;
    assert_int_equal(heap_cached_blocks(kept, size_class), 0);
    transfer_drain(SIZE_MAX);
}

static void *do_nothing(void *argument)
{
    return argument;
}

static void a_thread_that_never_allocates_has_no_heap(void **state)
{
    (void)state;
    unsigned made = heaps_made();
    uint64_t maps = os_counts[OS_MMAP];
    for (int i = 0; i < 50; i++)
        run_thread(do_nothing, NULL);
    assert_int_equal(heaps_made(), made);
    assert_int_equal(os_counts[OS_MMAP], maps);
}

static pthread_barrier_t barrier;

static void *use_together(void *argument)
{
    use_some();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    use_some();
    return argument;
}

static void threads_at_once_have_heaps_of_their_own(void **state)
{
    (void)state;
    pthread_t thread[THREADS];
    unsigned made = 0;
    for (int round = 0; round < 10; round++) {
        pthread_barrier_init(&barrier, NULL, THREADS + 1);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&thread[i], NULL, use_together, NULL), 0);
        pthread_barrier_wait(&barrier);
        assert_int_equal(heaps_in_use(), THREADS);
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < THREADS; i++)
            pthread_join(thread[i], NULL);
        assert_int_equal(heaps_in_use(), 0);
        if (round == 0)
            made = heaps_made();
        assert_int_equal(heaps_made(), made);
        pthread_barrier_destroy(&barrier);
    }
    assert_int_equal(made, THREADS);
    return_everything();
    bin_check_all();
    assert_int_equal(page_heap_stats().used_pages, 0);
}

/* ---- Blocks that outlive or cross threads -----------------------------------------------------
 */

static void *crossing[BLOCKS];

static void *fill_crossing(void *argument)
{
    for (int i = 0; i < BLOCKS; i++) {
        crossing[i] = alloc(200);
        memset(crossing[i], i % 250, 200);
    }
    return argument;
}

static void *free_crossing(void *argument)
{
    for (int i = 0; i < BLOCKS; i++) {
        CHECK(unit_all_bytes(crossing[i], 200, (unsigned char)(i % 250)));
        release(crossing[i]);
    }
    return argument;
}

static void blocks_outlive_their_thread(void **state)
{
    (void)state;
    unsigned size_class = size_class_of(200);
    struct hakmem_usage before, between, after;
    stats_collect_class(size_class, &before);
    run_thread(fill_crossing, NULL);
    return_everything();
    stats_collect_class(size_class, &between);
    run_thread(free_crossing, NULL);
    return_everything();
    stats_collect_class(size_class, &after);
    assert_int_equal(between.malloc_calls - before.malloc_calls, BLOCKS);
    assert_int_equal(between.live_blocks - before.live_blocks, BLOCKS);
    assert_int_equal(between.cached_blocks, 0);
    assert_int_equal(after.free_calls - before.free_calls, BLOCKS);
    assert_int_equal(after.live_blocks, before.live_blocks);
    assert_int_equal(after.slabs, before.slabs);
}

/* A thread that only frees gives what it caches back when it flushes. It is the only one that has a
 * heap, so it may cache four times as much. */
static void *only_free(void *argument)
{
    free_crossing(argument);
    CHECK(heap_cached_blocks(heap_of_thread(), size_class_of(200)) <= 4 * 64 * KIB / 208);
    heap_flush(heap_of_thread(), SIZE_MAX);
    CHECK(heap_cached_blocks(heap_of_thread(), size_class_of(200)) == 0);
    return argument;
}

static void a_thread_that_only_frees_does_not_hoard(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        run_thread(fill_crossing, NULL);
        run_thread(only_free, NULL);
    }
    bin_check_all();
}

/* ---- Fork -------------------------------------------------------------------------------------
 */

/* What the threads cached stays allocated in the child, and the figures say so: nothing was freed
 * or allocated by the fork. */
static void check_figures(const struct hakmem_usage before[CLASS_COUNT])
{
    for (unsigned size_class = 1; size_class < CLASS_COUNT; size_class++) {
        struct hakmem_usage now;
        stats_collect_class(size_class, &now);
        CHECK(now.malloc_calls == before[size_class].malloc_calls);
        CHECK(now.free_calls == before[size_class].free_calls);
        CHECK(now.slabs == before[size_class].slabs);
    }
}

static void child_of_many_threads(void *before)
{
    alarm(HANG_SECONDS);
    check_figures(before);
    CHECK(heaps_in_use() == 1);
    use_some();
    for (int i = 0; i < 5; i++)
        run_thread(do_nothing, NULL);
    struct heap *other = NULL;
    run_thread(use_and_tell, &other);
    CHECK(other && other != heap_of_thread());
    for (struct heap *heap = heap_first(); heap; heap = heap->next)
        heap_check(heap);
    bin_check_all();
    page_heap_check();
}

/* The heaps of threads that do not exist in the child are free there, and empty. */
static void the_child_of_fork_abandons_other_heaps(void **state)
{
    (void)state;
    /* That sanitizer allows no new threads after the fork of a program with threads. */
    if (HAKMEM_SANITIZE_THREAD)
        skip();
    pthread_t thread[THREADS];
    use_some();
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, use_together, NULL), 0);
    pthread_barrier_wait(&barrier);
    assert_int_equal(heaps_in_use(), THREADS + 1);
    struct hakmem_usage before[CLASS_COUNT];
    for (unsigned size_class = 1; size_class < CLASS_COUNT; size_class++)
        stats_collect_class(size_class, &before[size_class]);
    unit_in_child(child_of_many_threads, before);
    assert_int_equal(heaps_in_use(), THREADS + 1);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(heaps_in_use(), 1);
    heap_forget();
    assert_null(heap_of_thread());
    assert_int_equal(heaps_in_use(), 0);
    use_some();
    assert_int_equal(heaps_in_use(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_heap_is_adopted_by_the_next_thread),
        cmocka_unit_test(pooled_heaps_keep_their_blocks_for_a_while),
        cmocka_unit_test(a_thread_that_never_allocates_has_no_heap),
        cmocka_unit_test(threads_at_once_have_heaps_of_their_own),
        cmocka_unit_test(blocks_outlive_their_thread),
        cmocka_unit_test(a_thread_that_only_frees_does_not_hoard),
        cmocka_unit_test(the_child_of_fork_abandons_other_heaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
