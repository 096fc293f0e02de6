/* thread/heap: destructors of thread-specific data, in all rounds (behaviours 33 and 34). */
#include "unit.h"

#include <limits.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/alloc.h"
#include "base/tuning.h"
#include "checks/checks.h"
#include "report/stats.h"
#include "slab/shard.h"
#include "slab/sweep.h"
#include "slab/transfer.h"
#include "thread/registry.h"

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

/* Joins the thread, and waits until the system has forgotten it: who comes next may take over what
 * it left only then. */
static void *join(pthread_t thread)
{
    struct stat tasks;
    void *result = NULL;
    CHECK(pthread_join(thread, &result) == 0);
    for (int i = 0; i < 10000 && stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 3; i++)
        usleep(100);
    return result;
}

static void run_thread(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, function, argument) == 0);
    join(thread);
}

/* Empties what threads that exited left in their heaps, and the transfer caches. */
static void return_everything(void)
{
    registry_flush_pool();
    transfer_drain(SIZE_MAX);
    sweep_purge(SIZE_MAX);
}

static pthread_key_t early_key, late_key;
static unsigned rounds_run;

/* Allocates in every round of destructors; what it allocates in one it frees in the next. */
static void destructor(void *block)
{
    rounds_run++;
    CHECK(((char *)block)[99] == 7);
    for (size_t size = 1; size < 3000; size += 200) {
        void *other = alloc(size);
        CHECK(other);
        memset(other, 1, size);
        release(other);
    }
    release(block);
}

static void destructor_that_returns(void *block)
{
    char *fresh = alloc(100);
    destructor(block);
    CHECK(fresh);
    fresh[99] = 7;
    pthread_setspecific(late_key, fresh);
}

static void *set_keys(void *argument)
{
    char *early = alloc(100), *late = alloc(100);
    early[99] = late[99] = 7;
    pthread_setspecific(early_key, early);
    pthread_setspecific(late_key, late);
    return argument;
}

static void *allocate_once(void *argument)
{
    release(alloc(100));
    return argument;
}

/* What the last of them keeps, the next thread finds. */
static void destructors_allocate_in_all_rounds(void **state)
{
    (void)state;
    /* That sanitizer stops watching a thread before its last round of destructors. */
    if (HAKMEM_SANITIZE_THREAD)
        skip();
    unsigned made = heaps_made();
    struct hakmem_usage before, after;
    stats_collect_class(size_class_of(100), &before);
    for (int i = 0; i < 50; i++) {
        rounds_run = 0;
        run_thread(set_keys, NULL);
        assert_int_equal(rounds_run, 1 + PTHREAD_DESTRUCTOR_ITERATIONS);
        assert_true(heaps_in_use() <= 1);
    }
    assert_true(heaps_made() <= made + 1);
    run_thread(allocate_once, NULL);
    assert_int_equal(heaps_in_use(), 0);
    return_everything();
    stats_collect_class(size_class_of(100), &after);
    /* The last round's block stays: nobody is left to free it. */
    assert_int_equal(after.live_blocks - before.live_blocks, 50);
    assert_int_equal(after.cached_blocks, 0);
    bin_check_all();
}

/* Destructors of the first two rounds find the thread's own heap. */
static pthread_key_t last_key;
static struct heap *heap_in_round[PTHREAD_DESTRUCTOR_ITERATIONS];
static unsigned calls_in_round[PTHREAD_DESTRUCTOR_ITERATIONS];

static void destructor_of_all_rounds(void *round)
{
    unsigned at = (unsigned)(uintptr_t)round - 1;
    for (unsigned i = 0; i < calls_in_round[at]; i++)
        release(alloc(100));
    heap_in_round[at] = heap_of_thread();
    if (at + 1 < PTHREAD_DESTRUCTOR_ITERATIONS)
        pthread_setspecific(last_key, (char *)round + 1);
}

static void *set_last_key(void *allocates)
{
    if (allocates)
        allocate_once(NULL);
    pthread_setspecific(last_key, (void *)1);
    return heap_of_thread();
}

static struct heap *run_destructors(bool allocates, const unsigned *calls)
{
    pthread_t thread;
    memcpy(calls_in_round, calls, sizeof calls_in_round);
    CHECK(pthread_create(&thread, NULL, set_last_key, allocates ? &thread : NULL) == 0);
    return join(thread);
}

static void destructors_find_the_heap(void **state)
{
    (void)state;
    if (HAKMEM_SANITIZE_THREAD)
        skip();
    struct heap *own = run_destructors(true, (unsigned[]){1, 1, 1, 1});
    assert_non_null(own);
    assert_ptr_equal(heap_in_round[0], own);
    assert_ptr_equal(heap_in_round[1], own);
    assert_null(heap_in_round[2]);
    assert_null(heap_in_round[3]);
    assert_int_equal(heaps_in_use(), 0);
}

/* The first call of all comes from a destructor: the heap is given back all the same. */
static void the_first_call_is_a_destructors(void **state)
{
    (void)state;
    if (HAKMEM_SANITIZE_THREAD)
        skip();
    assert_null(run_destructors(false, (unsigned[]){1, 0, 0, 0}));
    assert_non_null(heap_in_round[0]);
    assert_int_equal(heaps_in_use(), 0);
}

/* Many calls after the heap was released do not borrow one each. What the last round keeps, nobody
 * gives back, but later threads find it. */
static void late_calls_keep_a_heap(void **state)
{
    (void)state;
    if (HAKMEM_SANITIZE_THREAD)
        skip();
    unsigned made = heaps_made();
    for (int i = 0; i < 20; i++) {
        run_destructors(true, (unsigned[]){0, 0, 1 + BORROWS_MAX, 1 + BORROWS_MAX});
        assert_non_null(heap_in_round[2]);
        assert_non_null(heap_in_round[3]);
        assert_int_equal(heaps_in_use(), 1);
    }
    assert_true(heaps_made() <= made + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(destructors_allocate_in_all_rounds),
        cmocka_unit_test(destructors_find_the_heap),
        cmocka_unit_test(the_first_call_is_a_destructors),
        cmocka_unit_test(late_calls_keep_a_heap),
    };
    /* The allocator makes its key with the first call of all. */
    pthread_key_create(&early_key, destructor);
    release(alloc(1));
    heap_forget();
    pthread_key_create(&late_key, destructor_that_returns);
    pthread_key_create(&last_key, destructor_of_all_rounds);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
