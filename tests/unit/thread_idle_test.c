/* thread/idle: what threads cache that make no calls is sent home by others, whatever they were
 * doing when they were seen last (behaviours 51, 52). */
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "api/alloc.h"
#include "base/policy.h"
#include "base/pressure.h"
#include "checks/checks.h"
#include "os/os.h"
#include "reclaim/engine.h"
#include "report/stats.h"
#include "slab/shard.h"
#include "slab/transfer.h"
#include "thread/idle.h"
#include "thread/registry.h"

enum { SIZES = 6, BLOCKS = 12, MANY = 300, THREADS = 200 };

static const size_t sizes[SIZES] = {16, 100, 1000, 5000, 16000, 32768};

/* ---- A thread that does one thing after the other, as it is told ----------------------------- */

static struct {
    pthread_t thread;
    void (*_Atomic task)(void);
    struct heap *_Atomic heap;
} worker;

static void end(void)
{
}

static void *work(void *argument)
{
    void (*task)(void) = NULL;
    while (task != end) {
        while (!(task = worker.task))
            sched_yield();
        task();
        worker.heap = heap_of_thread();
        worker.task = NULL;
    }
    return argument;
}

static void let(void (*task)(void))
{
    worker.task = task;
    while (worker.task)
        sched_yield();
}

static int begin(void **state)
{
    (void)state;
    alloc_slow(1);
    return pthread_create(&worker.thread, NULL, work, NULL);
}

static int finish(void **state)
{
    (void)state;
    let(end);
    return pthread_join(worker.thread, NULL);
}

/* ---- What it does -----------------------------------------------------------------------------
 */

static unsigned class_of(size_t size)
{
    return size_class_for_shard(size_class_of(size), heap_of_thread()->shard);
}

/* The last calls are hits, after which the heap is open. */
static void use_all_sizes(void)
{
    void *blocks[BLOCKS];
    for (int round = 0; round < 4; round++) {
        for (int s = 0; s < SIZES; s++) {
            for (int i = 0; i < BLOCKS; i++) {
                CHECK((blocks[i] = alloc(sizes[s])) != NULL);
                memset(blocks[i], s + 1, sizes[s]);
            }
            for (int i = 0; i < BLOCKS; i++) {
                CHECK(unit_all_bytes(blocks[i], sizes[s], (unsigned char)(s + 1)));
                release(blocks[i]);
            }
        }
    }
    do { /* a new tick of the clock renews it */
        heap_of_thread()->parks_left = 0;
        release(alloc(16));
    } while (thread_heap != &heap_of_thread()->area->front);
}

static void use_and_park(void)
{
    use_all_sizes();
    heap_of_thread()->parks_left = 1;
    heap_leave(heap_enter());
}

static void check_heap(void)
{
    struct heap *mine = heap_enter();
    heap_check(mine);
    heap_leave(mine);
}

static void check_hits(void)
{
    for (int s = 0; s < SIZES; s++) {
        bool due; /* after these few pops it does not matter */
        if (sizes[s] > SHORT_MAX) {
            size_t size_class = front_class(thread_heap, sizes[s]);
            void *long_block = magazine_pop_long(thread_heap, size_class, &due);
            CHECK(long_block && magazine_push_long(thread_heap, long_block));
            CHECK(!magazine_push_long(thread_heap, long_block));
            continue;
        }
        void *block = alloc_hit(thread_heap, sizes[s], &due);
        CHECK(block && magazine_push(thread_heap, class_of(sizes[s]), block) == PUSH_MARKED);
        *(void **)block = NULL;
        CHECK(magazine_push(thread_heap, class_of(sizes[s]), block) == PUSH_DONE);
    }
}

static unsigned cached_blocks(struct heap *heap)
{
    unsigned count = 0, most = 0;
    for (unsigned size_class = 1; size_class < CLASS_COUNT; size_class++) {
        unsigned held = heap_cached_blocks(heap, size_class);
        count += held;
        most = held > most ? held : most;
    }
    return most > 1 ? count : most; /* 0 and 1 mean that of any class */
}

static struct hakmem_usage usage(void)
{
    struct hakmem_usage sum = {0};
    for (unsigned size_class = 1; size_class <= SIZE_COUNT; size_class++) {
        struct hakmem_usage one;
        stats_collect_class(size_class, &one);
        sum.live_blocks += one.live_blocks;
        sum.malloc_calls += one.malloc_calls;
        sum.malloc_hits += one.malloc_hits;
        sum.free_calls += one.free_calls;
        sum.free_hits += one.free_hits;
    }
    return sum;
}

/* ---- Tests ------------------------------------------------------------------------------------
 */

static void an_open_heap_keeps_one_block_a_class(void **state)
{
    (void)state;
    let(use_all_sizes);
    assert_true(cached_blocks(worker.heap) > 1);
    struct hakmem_usage before = usage();
    idle_purge();
    assert_int_equal(cached_blocks(worker.heap), 1);
    struct hakmem_usage after = usage();
    assert_int_equal(after.live_blocks, before.live_blocks);
    assert_int_equal(after.malloc_calls, before.malloc_calls);
    assert_int_equal(after.free_calls, before.free_calls);
    assert_int_equal(after.malloc_hits, before.malloc_hits);
    assert_int_equal(after.free_hits, before.free_hits);
    let(check_heap);
    let(use_all_sizes);
    let(check_hits);
    let(check_heap);
}

/* Without memory, too, a thread gets what others cache. */
static void everything_reaches_an_open_heap(void **state)
{
    (void)state;
    let(use_all_sizes);
    assert_true(cached_blocks(worker.heap) > 1);
    reclaim_everything();
    assert_int_equal(cached_blocks(worker.heap), 1);
    let(use_all_sizes);
    let(check_hits);
    let(check_heap);
}

static void a_drained_heap_is_not_waited_for(void **state)
{
    struct rusage before, after;
    (void)state;
    let(use_all_sizes);
    idle_purge();
    getrusage(RUSAGE_THREAD, &before);
    idle_purge();
    getrusage(RUSAGE_THREAD, &after);
    assert_int_equal(after.ru_nvcsw, before.ru_nvcsw);
    let(use_all_sizes);
    let(check_heap);
}

static void a_parked_heap_keeps_none(void **state)
{
    (void)state;
    let(use_and_park);
    assert_true(cached_blocks(worker.heap) > 1);
    idle_purge();
    assert_int_equal(cached_blocks(worker.heap), 0);
    let(use_all_sizes);
    let(check_heap);
}

static void use_1000_and_park(void)
{
    void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        CHECK((blocks[i] = alloc(1000)) != NULL);
    for (int i = 0; i < BLOCKS; i++)
        release(blocks[i]);
    heap_of_thread()->parks_left = 1;
    heap_leave(heap_enter());
}

static void *purge_idle(void *unused)
{
    idle_purge();
    return unused;
}

/* The owner comes and goes while who drains its heap waits for a lock to send blocks home. */
static void what_came_back_meanwhile_is_drained_later(void **state)
{
    (void)state;
    long delay_ms = policy.purge_delay_ms;
    pthread_t purger;
    struct heap *mine = heap_enter();
    heap_flush(mine, SIZE_MAX);
    heap_leave(mine);
    policy.purge_delay_ms = INT32_MAX; /* nobody else waits for that lock */
    transfer_drain(SIZE_MAX);
    let(use_and_park);
    struct heap *heap = worker.heap;
    unsigned size_class = size_class_of(5000);
    struct lock *lock = &bin_of(heap->shard, size_class)->lock;
    assert_true(heap_cached_blocks(heap, size_class) > 0);
    lock_acquire(lock);
    assert_int_equal(pthread_create(&purger, NULL, purge_idle, NULL), 0);
    while (heap_cached_blocks(heap, size_class))
        sched_yield();
    let(use_1000_and_park);
    lock_release(lock);
    assert_int_equal(pthread_join(purger, NULL), 0);
    assert_true(cached_blocks(heap) > 1);
    policy.purge_delay_ms = delay_ms;
    idle_purge();
    assert_int_equal(cached_blocks(heap), 0);
    let(check_heap);
}

/* All that is left to do of a hit when it has loaded what it needs. */
static struct {
    struct heap_front *front;
    unsigned size_class;
    void **top, *block;
    size_t size;
} hit;

static void begin_pop(void)
{
    use_all_sizes();
    hit.front = thread_heap;
    hit.size_class = class_of(hit.size);
    hit.top = hit.front->top[hit.size_class];
    hit.block = *hit.top;
    CHECK(hit.block);
}

static void end_pop(void)
{
    STORE_HOT(&hit.front->top[hit.size_class], hit.top - 1);
    bool due = count_down_hot(&hit.front->pops_left[hit.size_class]);
    unpoison(hit.block, hit.size);
    if (size_class_is_long(hit.size_class))
        superslab_start_block(hit.block, hit.size_class);
    if (due) /* as after any pop, if a new tick of the clock began before */
        CHECK(alloc_due(hit.block, hit.size, MIN_ALIGNMENT, false) == hit.block);
    memset(hit.block, 0xee, hit.size);
}

static void begin_push(void)
{
    use_all_sizes();
    hit.block = alloc(hit.size);
    CHECK(hit.block);
    hit.front = thread_heap;
    hit.size_class = class_of(hit.size);
    CHECK(!magazine_is_full(hit.front, hit.size_class));
    hit.top = hit.front->top[hit.size_class];
}

static void end_push(void)
{
    if (size_class_is_long(hit.size_class))
        superslab_end_block(hit.block);
    else
        *(mark *)hit.block = magazine_mark_of(hit.front);
    poison_block(hit.block, size_classes[hit.size_class].size);
    hit.top[1] = hit.block;
    STORE_HOT(&hit.front->top[hit.size_class], hit.top + 1);
}

/* Takes blocks of the size until all free ones are taken; true when the block is among them. */
static bool is_handed_out(size_t size, const void *block)
{
    static void *taken[MANY];
    bool found = false;
    for (int i = 0; i < MANY; i++) {
        CHECK((taken[i] = alloc(size)) != NULL);
        memset(taken[i], i, size);
        found |= taken[i] == block;
    }
    for (int i = 0; i < MANY; i++)
        release(taken[i]);
    return found;
}

static void a_stalled_pop_keeps_its_block(void **state)
{
    (void)state;
    for (int s = 0; s < SIZES; s++) {
        hit.size = sizes[s];
        let(begin_pop);
        idle_purge();
        reclaim_everything();
        assert_false(is_handed_out(hit.size, hit.block));
        let(end_pop);
        assert_int_equal(heap_cached_blocks(worker.heap, hit.size_class), 0);
        assert_false(is_handed_out(hit.size, hit.block));
        assert_true(unit_all_bytes(hit.block, hit.size, 0xee));
        release(hit.block);
        let(check_heap);
    }
}

static void a_stalled_push_brings_its_block(void **state)
{
    (void)state;
    for (int s = 0; s < SIZES; s++) {
        hit.size = sizes[s];
        let(begin_push);
        idle_purge();
        reclaim_everything();
        let(end_push);
        assert_int_equal(heap_cached_blocks(worker.heap, hit.size_class), 2);
        assert_false(is_handed_out(hit.size, hit.block));
        let(check_heap);
        let(use_and_park);
        idle_purge();
        reclaim_everything();
        let(check_heap);
    }
}

/* The hand comes by the heaps, and takes so many blocks of each at a time. */
enum { ROUNDS = 8 };

static void go_round(unsigned times)
{
    while (times--) {
        idle_look();
        while (idle_step())
            continue;
    }
}

/* Rounds a while apart do what a purge on request does. */
static void ticks_reach_idle_heaps(void **state)
{
    (void)state;
    let(use_all_sizes);
    go_round(1);
    assert_int_equal(worker.heap->state, HEAP_CLOSED);
    assert_true(cached_blocks(worker.heap) > 1);
    os_sleep_ms(2);
    go_round(ROUNDS);
    assert_int_equal(cached_blocks(worker.heap), 1);
    let(check_heap);
    assert_int_not_equal(worker.heap->state, HEAP_CLOSED);
}

/* A child of fork may have a clock by which the heap was closed in the future. */
static void a_clock_that_was_set_back_does_not_stop_drains(void **state)
{
    (void)state;
    let(use_all_sizes);
    go_round(1);
    assert_true(worker.heap->state == HEAP_CLOSED && cached_blocks(worker.heap) > 1);
    worker.heap->closed_ns = os_clock_ns() + 3600 * (uint64_t)1000000000;
    go_round(ROUNDS);
    assert_int_equal(cached_blocks(worker.heap), 1);
    let(check_heap);
}

/* A step does not go through all heaps, however many there are. */
static atomic_int ready, over;

static void *stay(void *argument)
{
    release(alloc(1));
    ready++;
    while (!over)
        sched_yield();
    return argument;
}

static void steps_are_short(void **state)
{
    (void)state;
    static pthread_t threads[THREADS];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * KIB);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], &attributes, stay, NULL), 0);
    while (ready != THREADS)
        sched_yield();
    unsigned steps = 1;
    idle_look();
    while (idle_step())
        steps++;
    assert_in_range(steps, THREADS / 64, THREADS);
    let(use_all_sizes);
    idle_look();
    while (idle_step())
        continue;
    assert_int_equal(worker.heap->state, HEAP_CLOSED);
    over = 1;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* Others drain the heap of this thread, which then forks, and its child, too. */
static void purge_from_outside(void)
{
    idle_purge();
}

static void use_in_child(void *unused)
{
    (void)unused;
    use_all_sizes();
    check_heap();
}

static void a_child_goes_on_with_a_drained_heap(void **state)
{
    (void)state;
    use_all_sizes();
    struct heap *mine = heap_of_thread();
    let(purge_from_outside);
    assert_true(mine->state == HEAP_CLOSED && mine->drained);
    unit_in_child(use_in_child, NULL);
    use_all_sizes();
    check_heap();
}

static void leave_in_child(void *unused)
{
    heap_forget();
    use_in_child(unused);
}

/* The thread that forked may end before any slow path of it, and another one, which does not exist
 * in the child, had the gate. */
static void a_child_leaves_a_heap_whose_gate_is_lost(void **state)
{
    (void)state;
    use_all_sizes();
    struct heap *mine = heap_of_thread();
    mine->gate = GATE_OTHER;
    unit_in_child(leave_in_child, NULL);
    mine->gate = GATE_FREE;
    check_heap();
}

static void use_and_exit(void)
{
    use_all_sizes();
}

static void a_drained_heap_is_adopted(void **state)
{
    (void)state;
    let(use_and_exit);
    struct heap *drained = worker.heap;
    idle_purge();
    finish(NULL);
    assert_false(heap_in_use(drained));
    assert_true(drained->state == HEAP_APART && !drained->drained);
    heap_check(drained);
    begin(NULL);
    let(use_all_sizes);
    let(check_heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_open_heap_keeps_one_block_a_class),
        cmocka_unit_test(everything_reaches_an_open_heap),
        cmocka_unit_test(a_drained_heap_is_not_waited_for),
        cmocka_unit_test(a_parked_heap_keeps_none),
        cmocka_unit_test(what_came_back_meanwhile_is_drained_later),
        cmocka_unit_test(a_stalled_pop_keeps_its_block),
        cmocka_unit_test(a_stalled_push_brings_its_block),
        cmocka_unit_test(ticks_reach_idle_heaps),
        cmocka_unit_test(a_clock_that_was_set_back_does_not_stop_drains),
        cmocka_unit_test(steps_are_short),
        cmocka_unit_test(a_child_goes_on_with_a_drained_heap),
        cmocka_unit_test(a_child_leaves_a_heap_whose_gate_is_lost),
        cmocka_unit_test(a_drained_heap_is_adopted),
    };
    return cmocka_run_group_tests(tests, begin, finish);
}
