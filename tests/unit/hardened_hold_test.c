/* thread/hold: in which order freed blocks come back, and what becomes of those that a thread holds
 * when it is interrupted, ends, forks, or memory runs out. */
#include "hardened_unit.h"

#include <errno.h>
#include <pthread.h>

#include "hardened/hold.h"
#include "hardened/tags.h"
#include "os/os.h"
#include "slab/shard.h"
#include "thread/registry.h"

static uint64_t cached_blocks(void)
{
    struct snapshot now;
    stats_collect(&now);
    return now.total.cached_blocks;
}

/* Freed blocks wait for at least as many others as the queue has places. */
static void a_freed_block_is_not_the_next_one(void **state)
{
    enum { MANY = 10000, SOON = HOLD_PLACES };
    static void *blocks[MANY];
    unsigned soon = 0, again = 0;
    (void)state;
    for (unsigned i = 0; i < MANY; i++) {
        blocks[i] = take(64);
        give(blocks[i]);
        for (unsigned j = 1; j <= size_min(i, 400); j++) {
            if (tags_strip(blocks[i - j]) != tags_strip(blocks[i]))
                continue;
            again++;
            soon += j < SOON;
            break;
        }
    }
    assert_int_equal(soon, 0);
    assert_true(again > MANY / 10);
}

static void a_busy_hold_is_gone_around(void **state)
{
    (void)state;
    void *before = take(100), *long_before = take(5000);
    struct hold *hold = hold_begin();
    assert_non_null(hold);
    assert_null(hold_begin());
    char *block = take(100);
    CHECK(unit_all_bytes(block, 100, 0));
    give(block);
    give(before);
    give(long_before);
    hold_end(hold);
    assert_int_equal(live_blocks(), 0);
}

static void *use_and_leave(void *blocks)
{
    for (int i = 0; i < 300; i++)
        ((void **)blocks)[i] = take((size_t)i * 7 % 2000 + 1);
    for (int i = 0; i < 300; i += 2)
        give(((void **)blocks)[i]);
    return NULL;
}

static unsigned used_blocks(void)
{
    unsigned used = 0;
    for (unsigned size_class = 1; size_class <= SIZE_COUNT; size_class++) {
        struct bin *bin = bin_of(HARDENED_SHARD, size_class);
        used += bin->slab_count * slab_blocks_of(size_class) - bin->free_blocks;
    }
    return used;
}

static void what_a_thread_holds_counts_as_cached(void **state)
{
    static void *blocks[300];
    (void)state;
    hardened_flush();
    assert_int_equal(cached_blocks(), 0);
    use_and_leave(blocks);
    assert_true(cached_blocks() >= 150);
    assert_int_equal(live_blocks() + cached_blocks(), used_blocks());
    for (int i = 1; i < 300; i += 2)
        give(blocks[i]);
    assert_int_equal(live_blocks(), 0);
    assert_int_equal(cached_blocks(), used_blocks());
    hardened_flush();
    assert_int_equal(cached_blocks(), 0);
}

static void a_thread_that_ends_gives_all_back(void **state)
{
    static void *blocks[300];
    (void)state;
    hardened_flush();
    unsigned before = used_blocks();
    for (int round = 0; round < 20; round++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, use_and_leave, blocks) == 0);
        pthread_join(thread, NULL);
        assert_int_equal(used_blocks(), before + 150);
        for (int i = 1; i < 300; i += 2)
            give(blocks[i]);
        hardened_flush();
        assert_int_equal(used_blocks(), before);
    }
    assert_int_equal(live_blocks(), 0);
}

/* Enough threads at once that the heaps of some give their pages back when they end. */
enum { CROWD = 64 };

static void *use_among_others(void *barrier)
{
    static __thread void *blocks[300];
    use_and_leave(blocks);
    for (int i = 1; i < 300; i += 2)
        give(blocks[i]);
    pthread_barrier_wait(barrier);
    return NULL;
}

static void have_crowd(void)
{
    pthread_t threads[CROWD];
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, CROWD);
    for (int i = 0; i < CROWD; i++)
        CHECK(pthread_create(&threads[i], NULL, use_among_others, &barrier) == 0);
    for (int i = 0; i < CROWD; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    registry_flush_pool();
}

/* The pages of their holds, too; what these counted counts on. */
static void ended_threads_keep_no_pages(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < 3; round++) {
        struct snapshot before, after;
        unsigned bare = 0;
        stats_collect(&before);
        have_crowd();
        stats_collect(&after);
        assert_int_equal(after.total.malloc_calls, before.total.malloc_calls + CROWD * 300);
        assert_int_equal(after.total.free_calls, before.total.free_calls + CROWD * 300);
        assert_int_equal(after.total.live_blocks, before.total.live_blocks);
        for (const struct heap *heap = heap_first(); heap; heap = heap->next) {
            if (!heap->bare || !heap->hold)
                continue;
            bare++;
            for (size_t at = 0; at < hardened_heap_bytes(heap); at += os_page_size())
                assert_false(unit_is_resident((const char *)heap->hold + at));
        }
        assert_true(bare >= CROWD / 2);
    }
}

/* Most threads use few blocks of most sizes. */
static void *take_one_of_each(void *unused)
{
    static void *blocks[MID_CLASS_LAST + 1];
    unsigned before = used_blocks(), classes = MID_CLASS_LAST;
    for (unsigned size_class = 1; size_class <= classes; size_class++)
        blocks[size_class] = take(size_classes[size_class].size - CANARY_SIZE);
    CHECK(used_blocks() == before + classes);
    for (unsigned size_class = 1; size_class <= classes; size_class++)
        give(blocks[size_class]);
    return unused;
}

static void a_new_thread_takes_few(void **state)
{
    pthread_t thread;
    (void)state;
    for (int round = 0; round < 2; round++) {
        CHECK(pthread_create(&thread, NULL, take_one_of_each, NULL) == 0);
        pthread_join(thread, NULL);
    }
}

static void *work_until(void *stop)
{
    enum { BLOCKS = 64 };
    void *blocks[BLOCKS] = {NULL};
    uint64_t random = (uintptr_t)&blocks;
    while (!ATOMIC_LOAD_RELAXED((bool *)stop)) {
        unsigned i = unit_below(&random, BLOCKS);
        give(blocks[i]);
        blocks[i] = take(1 + unit_below(&random, 6000));
        memset(blocks[i], 0x41, 1);
    }
    for (int i = 0; i < BLOCKS; i++)
        give(blocks[i]);
    return NULL;
}

static void use_in_child(void *unused)
{
    bool stop = true;
    pthread_t threads[4];
    work_until(&stop);
    for (int i = 0; i < 200; i++)
        give(take((size_t)i * 31 + 1));
    stop = false;
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, work_until, &stop) == 0);
    usleep(10000);
    ATOMIC_STORE_RELAXED(&stop, true);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    hardened_flush();
    (void)unused;
}

static void children_of_a_busy_process_go_on(void **state)
{
    static bool stop;
    pthread_t threads[3];
    (void)state;
    if (HAKMEM_SANITIZE_THREAD)
        skip(); /* it starts no threads in a child of several */
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, work_until, &stop) == 0);
    for (int i = 0; i < 20; i++)
        unit_in_child(use_in_child, NULL);
    ATOMIC_STORE_RELAXED(&stop, true);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(live_blocks(), 0);
}

static void run_out(void *unused)
{
    enum { BLOCKS = 100000 };
    static void *blocks[BLOCKS];
    struct rlimit limit = {256 * MIB, 256 * MIB};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    for (int round = 0; round < 3; round++) {
        int count = 0;
        errno = 0;
        while (count < BLOCKS && (blocks[count] = hardened_alloc(5000, 16, FORM_MALLOC)) != NULL)
            count++;
        CHECK(count > 10000 && count < BLOCKS && errno == ENOMEM);
        while (count > 0)
            give(blocks[--count]);
    }
    give(take(100));
    (void)unused;
}

static void exhaustion_is_null(void **state)
{
    (void)state;
    if (HAKMEM_SANITIZE_THREAD || HAKMEM_SANITIZE_ADDRESS)
        skip(); /* these need more addresses than there are limits for */
    unit_in_child(run_out, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_freed_block_is_not_the_next_one),
        cmocka_unit_test(a_busy_hold_is_gone_around),
        cmocka_unit_test(what_a_thread_holds_counts_as_cached),
        cmocka_unit_test(a_thread_that_ends_gives_all_back),
        cmocka_unit_test(ended_threads_keep_no_pages),
        cmocka_unit_test(a_new_thread_takes_few),
        cmocka_unit_test(children_of_a_busy_process_go_on),
        cmocka_unit_test(exhaustion_is_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
