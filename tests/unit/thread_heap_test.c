/* thread/heap: magazines that fill, empty, grow and shrink, with the walker after every step, and
 * the figures that are derived from them. All through the same functions that malloc and free
 * call. */
#include "unit.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/alloc.h"
#include "base/policy.h"
#include "base/pressure.h"
#include "checks/checks.h"
#include "os/os.h"
#include "report/stats.h"
#include "slab/shard.h"
#include "slab/sweep.h"
#include "slab/transfer.h"
#include "span/page_heap.h"
#include "thread/idle.h"
#include "thread/registry.h"
#include "trace/due.h"

enum { HELD = 4000, STEPS = 60000 };

static void **held;

static struct heap *heap(void)
{
    struct heap *mine = heap_enter();
    CHECK(mine);
    heap_leave(mine);
    return mine;
}

static struct hakmem_usage usage_of(unsigned size_class)
{
    struct hakmem_usage usage;
    stats_collect_class(size_class, &usage);
    return usage;
}

/* Slow calls make time pass for the magazines. */
static void pass_maintenance(unsigned times)
{
    for (unsigned i = 0; i < times * 256; i++)
        heap();
}

static unsigned capacity_of(const struct heap *mine, unsigned size_class)
{
    return magazine_of(mine, size_class)->capacity;
}

static void *hit(size_t size)
{
    bool due = false;
    void *block = size > SHORT_MAX
                      ? magazine_pop_long(thread_heap, front_class(thread_heap, size), &due)
                      : alloc_hit(thread_heap, size, &due);
    return due ? alloc_due(block, size, MIN_ALIGNMENT, false) : block;
}

static void a_thread_starts_without_a_heap(void **state)
{
    (void)state;
    assert_null(heap_of_thread());
    for (size_t size = 0; size <= MID_MAX + 1; size += 97)
        assert_null(hit(size));
    void *local[2];
    assert_int_equal(magazine_push(thread_heap, CLASS_NONE, local), PUSH_FULL);
    struct heap *mine = heap();
    assert_ptr_equal(heap_of_thread(), mine);
    assert_true(heap_in_use(mine));
    heap_check(mine);
    assert_null(hit(16));
}

static void the_size_tables_of_the_front_are_those_of_the_classes(void **state)
{
    (void)state;
    const struct heap_front *front = &heap()->area->front;
    for (size_t size = 0; size <= TINY_MAX; size++)
        CHECK(front->tiny_class[size] == size_class_of(size));
    for (size_t size = TINY_MAX + 1; size <= MID_MAX; size++)
        CHECK(front->mid_class[(size - 1) / MID_STEP] == size_class_of(size));
}

static void a_refill_is_handed_out_in_rising_order(void **state)
{
    (void)state;
    struct heap *mine = heap();
    unsigned size_class = size_class_of(224);
    char *last = alloc(224);
    unsigned count = heap_cached_blocks(mine, size_class);
    assert_true(count > 0);
    for (unsigned i = 0; i < count; i++) {
        char *block = alloc(224);
        assert_ptr_equal(block, last + 224);
        assert_false(heap_caches(mine, size_class, block));
        last = block;
    }
    assert_int_equal(heap_cached_blocks(mine, size_class), 0);
    for (unsigned i = 0; i <= count; i++)
        release(last - i * 224);
    assert_true(heap_caches(mine, size_class, last - count * 224));
    heap_check(mine);
    heap_flush(mine, SIZE_MAX);
    assert_int_equal(heap_cached_blocks(mine, size_class), 0);
    transfer_drain(SIZE_MAX);
    assert_int_equal(bin_of(mine->shard, size_class)->slab_count, 0);
}

static unsigned capacity_after_load(struct heap *mine, size_t size)
{
    for (int round = 0; round < 8; round++) {
        for (int i = 0; i < 1000; i++) {
            CHECK(held[i] = alloc(size));
            memset(held[i], 0, size);
        }
        for (int i = 0; i < 1000; i++)
            release(held[i]);
        heap_check(mine);
    }
    return capacity_of(mine, size_class_of(size));
}

static void magazines_grow_under_load_to_their_limit(void **state)
{
    (void)state;
    struct heap *mine = heap();
    static const size_t sizes[] = {16, 256, 1024, 4096, 32768};
    for (size_t s = 0; s < ARRAY_LENGTH(sizes); s++) {
        unsigned size_class = size_class_of(sizes[s]), before = capacity_of(mine, size_class);
        unsigned capacity = capacity_after_load(mine, sizes[s]);
        size_t blocks = 4 * (size_t)policy.magazine_kib * KIB / sizes[s];
        blocks = size_class <= TINY_CLASS_LAST ? size_min(blocks, 4095) : 63;
        unsigned limit = (unsigned)blocks;
        assert_in_range(capacity, size_min(limit, 2 * before), limit);
    }
}

/* What the thread may cache of all sizes above 1 KiB together, with `live` bytes in use: three
 * quarters of the memory in use, or 64 times `magazine_kib`. */
static size_t sum_of_capacities(const struct heap *mine)
{
    size_t sum = 0;
    for (unsigned size_class = TINY_CLASS_LAST + 1; size_class <= SIZE_COUNT; size_class++)
        sum += (size_t)capacity_of(mine, size_class) * size_classes[size_class].size;
    return sum;
}

static void bounded_together(struct heap *mine, size_t live, size_t step)
{
    char *kept = live ? alloc(live) : NULL;
    size_t least = 64 * (size_t)policy.magazine_kib * KIB, most = 0, used = 0;
    for (int round = 0; round < 6; round++) {
        for (size_t size = 1100 + (size_t)round * 13; size < LARGE_MAX; size += size / step) {
            for (int i = 0; i < 40; i++)
                CHECK(held[i] = alloc(size));
            for (int i = 0; i < 40; i++)
                release(held[i]);
            most = size_max(most, mine->allowed_bytes);
            used = size_max(used, pressure_used());
        }
        heap_check(mine);
        assert_int_equal(mine->allowed_bytes, sum_of_capacities(mine));
        /* The last batch of a class came when less was in use, or before a tick found so. */
        CHECK(mine->allowed_bytes <= size_max(least, used / 4 * 3 + 2 * LARGE_MAX));
    }
    /* Not at the end, after sizes of which none may fit. */
    CHECK(most > least / 2);
    if (kept)
        release(kept);
    heap_flush(mine, SIZE_MAX);
    pass_maintenance(8);
    CHECK(mine->allowed_bytes < least / 8);
}

static void blocks_above_1_kib_share_an_allowance(void **state)
{
    (void)state;
    struct heap *mine = heap();
    bounded_together(mine, 0, 7);
    bounded_together(mine, 0, 30);
    bounded_together(mine, 200 * MIB + 12345, 9);
    policy.magazine_kib = 16;
    bounded_together(mine, 0, 5);
    policy.magazine_kib = 64;
}

/* Other threads: each has a heap from the first barrier to the second one, makes a call between the
 * third and the fourth, and ends. */
static struct {
    pthread_t threads[1024];
    pthread_barrier_t barrier;
    unsigned count;
} others;

static void *crowding_thread(void *unused)
{
    for (int round = 0; round < 2; round++) {
        release(alloc(16));
        pthread_barrier_wait(&others.barrier);
        pthread_barrier_wait(&others.barrier);
    }
    return unused;
}

static void start_others(unsigned count)
{
    if (count > ARRAY_LENGTH(others.threads))
        skip();
    others.count = count;
    assert_int_equal(pthread_barrier_init(&others.barrier, NULL, count + 1), 0);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(pthread_create(&others.threads[i], NULL, crowding_thread, NULL), 0);
    pthread_barrier_wait(&others.barrier);
}

static void wake_others(void)
{
    pthread_barrier_wait(&others.barrier);
    pthread_barrier_wait(&others.barrier);
}

static void end_others(void)
{
    pthread_barrier_wait(&others.barrier);
    for (unsigned i = 0; i < others.count; i++)
        assert_int_equal(pthread_join(others.threads[i], NULL), 0);
    pthread_barrier_destroy(&others.barrier);
    registry_flush_pool();
}

/* What the calling thread comes to cache of a size beside `count` threads that have a heap. */
static unsigned capacity_beside(unsigned count, struct heap *mine, size_t size)
{
    start_others(count);
    heap_flush(mine, SIZE_MAX);
    unsigned capacity = capacity_after_load(mine, size);
    wake_others();
    end_others();
    return capacity;
}

/* Of tiny blocks, a pool of four threads a CPU does not. */
static void many_threads_make_magazines_shorter(void **state)
{
    (void)state;
    struct heap *mine = heap();
    unsigned cpus = os_cpu_count(), limit = 4 * (unsigned)((size_t)policy.magazine_kib * KIB / 256);
    long delay_ms = policy.purge_delay_ms;
    policy.purge_delay_ms = 3600000; /* no ticks meanwhile: threads that wait would not count */
    ATOMIC_STORE_RELAXED(&pressure_used_bytes, 0); /* the tests before may have used much */
    assert_in_range(capacity_after_load(mine, 256), limit / 2 + 1, limit);
    assert_in_range(capacity_beside(4 * cpus - 1, mine, 256), limit / 2 + 1, limit);
    assert_in_range(capacity_beside(6 * cpus, mine, 256), 1, limit / 2);
    heap_flush(mine, SIZE_MAX);
    unsigned alone = capacity_after_load(mine, 40000);
    assert_in_range(capacity_beside(8 * cpus, mine, 40000), 1, alone - 1);
    policy.purge_delay_ms = delay_ms;
}

/* In a child of fork no thread waits, whatever heaps of the parent's it finds. */
static void check_child(void)
{
    /* That sanitizer allows no new threads after the fork of a program with threads. */
    if (HAKMEM_SANITIZE_THREAD)
        return;
    pid_t child = fork();
    if (child == 0) {
        release(alloc(16));
        pthread_t thread;
        CHECK(pthread_barrier_init(&others.barrier, NULL, 1) == 0);
        for (int i = 0; i < 8; i++) {
            CHECK(pthread_create(&thread, NULL, crowding_thread, NULL) == 0);
            CHECK(pthread_join(thread, NULL) == 0);
        }
        CHECK(registry.idle == 0 && heap_crowd() == 1);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void threads_that_make_no_calls_do_not(void **state)
{
    (void)state;
    struct heap *mine = heap();
    unsigned cpus = os_cpu_count(), count = 8 * cpus, alone = capacity_after_load(mine, 8192);
    long delay_ms = policy.purge_delay_ms;
    policy.purge_delay_ms = 3600000; /* no ticks meanwhile */
    start_others(count);
    assert_in_range(heap_crowd(), 8, 9);
    idle_purge();
    assert_int_equal(registry.idle, count + 1); /* this one waited, too */
    assert_int_equal(capacity_after_load(mine, 8192), alone);
    assert_int_equal(registry.idle, count);
    assert_int_equal(heap_crowd(), 1);
    check_child();
    wake_others();
    assert_int_equal(registry.idle, 0);
    assert_in_range(heap_crowd(), 8, 9);
    idle_purge();
    end_others();
    release(alloc(16));
    assert_int_equal(registry.idle, 0);
    assert_int_equal(heap_crowd(), 1);
    policy.purge_delay_ms = delay_ms;
}

static void idle_magazines_shrink_and_return_their_blocks(void **state)
{
    (void)state;
    struct heap *mine = heap();
    unsigned size_class = size_class_of(64), cached_before, kind_before;
    for (int round = 0; round < 8; round++) {
        for (int i = 0; i < 1000; i++)
            held[i] = alloc(64);
        for (int i = 0; i < 1000; i++)
            release(held[i]);
    }
    pass_maintenance(1);
    cached_before = heap_cached_blocks(mine, size_class);
    kind_before = magazine_of(mine, size_class)->kind;
    assert_true(cached_before > 8 && kind_before > 0);
    for (int i = 0; i < 20; i++) {
        unsigned before = heap_cached_blocks(mine, size_class);
        pass_maintenance(1);
        heap_check(mine);
        assert_true(heap_cached_blocks(mine, size_class) <= before / 2);
    }
    assert_int_equal(heap_cached_blocks(mine, size_class), 0);
    assert_int_equal(magazine_of(mine, size_class)->kind, 0);
}

/* More classes want long magazines than the slot area holds: all go on working. */
static void all_classes_at_once(void **state)
{
    (void)state;
    struct heap *mine = heap();
    policy.magazine_kib = 1024;
    for (int round = 0; round < 6; round++) {
        for (unsigned size_class = 1; size_class < CLASS_COUNT; size_class++) {
            size_t size = size_classes[size_class].size;
            for (int i = 0; i < 600; i++)
                held[i] = alloc(size);
            for (int i = 0; i < 600; i++)
                release(held[i]);
        }
        heap_check(mine);
        if (round == 3) /* the limit sinks while magazines are longer */
            policy.magazine_kib = 1;
    }
    policy.magazine_kib = 64;
    pass_maintenance(30);
    heap_check(mine);
    for (unsigned size_class = 1; size_class < CLASS_COUNT; size_class++)
        assert_int_equal(heap_cached_blocks(mine, size_class), 0);
    bin_check_all();
}

/* What the heap counts, against a count kept here. */
struct count {
    uint64_t mallocs, malloc_hits, frees, free_hits;
};

static void check_counts(unsigned size_class, struct hakmem_usage start, const struct count *count)
{
    struct hakmem_usage now = usage_of(size_class);
    CHECK(now.malloc_calls - start.malloc_calls == count->mallocs);
    CHECK(now.malloc_hits - start.malloc_hits == count->malloc_hits);
    CHECK(now.free_calls - start.free_calls == count->frees);
    CHECK(now.free_hits - start.free_hits == count->free_hits);
    CHECK(now.live_blocks - start.live_blocks == count->mallocs - count->frees);
    CHECK(
        now.cached_blocks ==
        heap_cached_blocks(heap_of_thread(), size_class) + transfer_blocks(size_class));
    CHECK(now.live_bytes == now.live_blocks * size_classes[size_class].size);
    CHECK(now.refills - start.refills <= count->mallocs - count->malloc_hits);
    CHECK(now.flushes - start.flushes <= count->frees - count->free_hits);
}

static bool push(struct heap *mine, size_t size, void *block)
{
    struct heap_front *front = &mine->area->front;
    return size > SHORT_MAX ? magazine_push_long(front, block)
                            : magazine_push(front, size_class_of(size), block) == PUSH_DONE;
}

static void random_calls_are_counted_exactly(void **state)
{
    (void)state;
    static const size_t sizes[] = {40, 1000, 2000, 20000};
    uint64_t random = 51;
    for (size_t s = 0; s < ARRAY_LENGTH(sizes); s++) {
        struct heap *mine = heap();
        unsigned size_class = size_class_of(sizes[s]), live = 0;
        unsigned most = sizes[s] > 10000 ? 400 : HELD;
        struct hakmem_usage start = usage_of(size_class);
        struct count count = {0, 0, 0, 0};
        for (int step = 0; step < STEPS; step++) {
            bool filling = step / 2000 % 2 == 0;
            if (live < most && (!live || unit_below(&random, 10) < (filling ? 6u : 4u))) {
                void **block = hit(sizes[s]);
                count.mallocs++;
                count.malloc_hits += block != NULL;
                held[live] = block ? block : alloc_slow(sizes[s]);
                CHECK(held[live]);
                memset(held[live++], 0xaa, sizes[s]);
            } else {
                unsigned i = unit_below(&random, live);
                void **block = held[i];
                held[i] = held[--live];
                count.frees++;
                bool pushed = push(mine, sizes[s], block);
                count.free_hits += pushed;
                if (!pushed)
                    free_slow(block);
            }
            if (step % 16 == 0)
                heap_check(mine);
            check_counts(size_class, start, &count);
        }
        while (live) {
            release(held[--live]);
        }
        CHECK(usage_of(size_class).live_blocks == start.live_blocks);
        bin_check_all();
    }
}

static void contents_are_whole_in_a_mixture(void **state)
{
    (void)state;
    uint64_t random = 61;
    static unsigned size[HELD];
    memset(held, 0, HELD * sizeof *held);
    for (int step = 0; step < STEPS; step++) {
        unsigned i = unit_below(&random, HELD);
        if (held[i]) {
            CHECK(unit_all_bytes(held[i], size[i], (unsigned char)(1 + i % 255)));
            release(held[i]);
            held[i] = NULL;
        } else {
            size[i] = 1 + unit_below(&random, 1u << unit_below(&random, 14));
            bool zeroed = unit_below(&random, 3) == 0;
            held[i] = zeroed ? alloc_zeroed(1, size[i]) : alloc(size[i]);
            CHECK(held[i] && (uintptr_t)held[i] % MIN_ALIGNMENT == 0);
            if (zeroed)
                CHECK(unit_all_bytes(held[i], size[i], 0));
            memset(held[i], (int)(1 + i % 255), size[i]);
        }
        if (step % 200 == 0) {
            heap_check(heap());
            transfer_check_all();
            sweep_purge(SIZE_MAX);
        }
    }
    for (unsigned i = 0; i < HELD; i++)
        if (held[i])
            release(held[i]);
    heap_flush(heap(), SIZE_MAX);
    transfer_check_all();
    transfer_drain(SIZE_MAX);
    bin_check_all();
    sweep_purge(SIZE_MAX);
    page_heap_check();
    assert_int_equal(page_heap_stats().used_pages, 0);
}

/* Blocks that the program never writes to still carry the mark of their last free, and are freed as
 * others, with a search or without. */
static void unwritten_blocks_are_freed_as_others(void **state)
{
    (void)state;
    unsigned size_class = size_class_of(400);
    uint64_t live = usage_of(size_class).live_blocks;
    struct heap *mine = heap();
    for (unsigned round = 0; round < 4; round++) {
        magazine_of(mine, size_class)->debt = round < 2 ? 0 : UINT8_MAX;
        for (unsigned i = 0; i < HELD; i++)
            assert_non_null(held[i] = alloc(400));
        for (unsigned i = 0; i < HELD; i++)
            release(held[round % 2 ? HELD - 1 - i : i]);
        heap_check(mine);
        assert_int_equal(usage_of(size_class).live_blocks, live);
    }
    /* Each overflow pays for a search. */
    assert_true(magazine_of(mine, size_class)->debt < UINT8_MAX);
}

/* However many blocks a search looks at: none makes less of the debt. */
static void a_debt_of_searches_stays(void **state)
{
    (void)state;
    unsigned size_class = size_class_of(400);
    uint8_t *debt = &magazine_of(heap(), size_class)->debt;
    *debt = 0;
    heap_searched(heap(), size_class, 2 * BLOCKS_PER_DEBT);
    assert_int_equal(*debt, 3);
    heap_searched(heap(), size_class, 253 * BLOCKS_PER_DEBT);
    assert_int_equal(*debt, UINT8_MAX);
    *debt = 0;
    heap_searched(heap(), size_class, 255 * BLOCKS_PER_DEBT);
    assert_int_equal(*debt, UINT8_MAX);
    *debt = 0;
}

/* Whatever a program writes first, it destroys the mark. */
static void the_least_write_destroys_the_mark(void **state)
{
    (void)state;
    unsigned size_class = size_class_of(64);
    struct heap *mine = heap();
    for (unsigned bytes = 1; bytes <= sizeof(mark); bytes++) {
        void **block = alloc(64);
        release(block);
        assert_ptr_equal(alloc(64), block);
        assert_int_equal(*(mark *)block, class_map_mark(class_map_newest()->classes));
        memset(block, 0, bytes);
        assert_int_equal(magazine_push(&mine->area->front, size_class, block), PUSH_DONE);
    }
}

/* What the magazine would hand out next is known without a search; what was freed long ago is not.
 */
struct freed {
    void *block;
    unsigned between; /* blocks that are freed before it is freed again */
};

static void free_among_others_then_again(void *argument)
{
    const struct freed *freed = argument;
    void *others[20];
    for (unsigned i = 0; i < 20; i++)
        CHECK(others[i] = alloc(256));
    release(freed->block);
    for (unsigned i = 0; i < freed->between; i++)
        release(others[i]);
    magazine_of(heap(), size_class_of(256))->debt = UINT8_MAX;
    release(freed->block);
}

static void free_twice(void *block)
{
    release(block);
    release(block);
}

static void free_twice_with_a_flush(void *block)
{
    release(block);
    heap_flush(heap(), SIZE_MAX);
    for (unsigned size_class = 1; size_class < CLASS_COUNT; size_class++)
        magazine_of(heap(), size_class)->debt = 0;
    release(block);
}

/* behaviour 24 */
static void double_frees_are_named(void **state)
{
    (void)state;
    char line[200];
    void *neighbour = alloc(48), *block = alloc(48);
    snprintf(line, sizeof line, "hakmem: free(): double free of %p", block);
    unit_expect_abort(free_twice, block, line);
    unit_expect_abort(free_twice_with_a_flush, block, line);
    release(block);
    release(neighbour);
    capacity_after_load(heap(), 256);
    struct freed freed = {alloc(256), 15};
    snprintf(line, sizeof line, "hakmem: free(): double free of %p", freed.block);
    unit_expect_abort(free_among_others_then_again, &freed, line);
    freed.between = 16;
    unit_in_child(free_among_others_then_again, &freed);
    release(freed.block);
}

/* Before memory grows, single blocks that the thread itself caches serve all. */
static void single_blocks_are_lent(void **state)
{
    (void)state;
    enum { BLOCKS = 20 };
    void *blocks[BLOCKS];
    struct heap *mine = heap_enter();
    unsigned size_class = size_class_of(MIB);
    for (unsigned i = 0; i < BLOCKS; i++)
        blocks[i] = alloc(MIB);
    for (unsigned i = 0; i < BLOCKS; i++)
        release(blocks[i]);
    assert_true(heap_cached_blocks(mine, size_class) > 1);
    size_t dirty = page_heap_stats().dirty_free_pages;
    assert_true(heap_flush_singles(mine));
    assert_int_equal(heap_cached_blocks(mine, size_class), 0);
    assert_true(page_heap_stats().dirty_free_pages > dirty); /* the bin may keep some */
    assert_false(heap_flush_singles(mine));
    heap_check(mine);
    heap_leave(mine);
}

/* Long blocks that a thread of another shard has freed come in batches, before fresh ones. */
static void take_from_another_shard(void *argument)
{
    (void)argument;
    enum { BLOCKS = 30 };
    void *blocks[BLOCKS];
    shard_init(2);
    struct heap *mine = heap_enter();
    unsigned size_class = size_class_of(12000), other = !mine->shard, got = 0, taken = 0,
             refills = 0;
    CHECK(shard_of_heap(other) == other);
    /* What other tests have left is not meant: the room of magazines, which each flush halves, and
     * blocks in the bins. */
    for (int i = 0; i < 10; i++)
        heap_flush(mine, SIZE_MAX);
    for (unsigned shard = 0; shard < 2; shard++)
        while (bin_refill(shard, size_class, blocks, BLOCKS, 1, REFILL_USED))
            continue;
    while (got < BLOCKS)
        got += bin_refill(other, size_class, blocks + got, BLOCKS - got, 1, REFILL_MAP);
    CHECK(transfer_put(other, size_class, blocks, BLOCKS) == BLOCKS);
    /* Whoever frees such blocks, too, takes none there. */
    magazine_of(mine, size_class)->two_way = magazine_of(mine, size_class)->flushed_last = false;
    for (; heap_refill(mine, size_class, false); refills++)
        for (taken++; heap_pop(mine, size_class);)
            taken++;
    CHECK(taken == BLOCKS && refills < BLOCKS / 2);
    heap_leave(mine);
}

static void long_blocks_come_from_other_shards_in_batches(void **state)
{
    (void)state;
    unit_in_child(take_from_another_shard, NULL);
}

static int start(void **state)
{
    (void)state;
    held = calloc(HELD, sizeof *held);
    return held ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_starts_without_a_heap),
        cmocka_unit_test(the_size_tables_of_the_front_are_those_of_the_classes),
        cmocka_unit_test(a_refill_is_handed_out_in_rising_order),
        cmocka_unit_test(magazines_grow_under_load_to_their_limit),
        cmocka_unit_test(blocks_above_1_kib_share_an_allowance),
        cmocka_unit_test(many_threads_make_magazines_shorter),
        cmocka_unit_test(threads_that_make_no_calls_do_not),
        cmocka_unit_test(idle_magazines_shrink_and_return_their_blocks),
        cmocka_unit_test(all_classes_at_once),
        cmocka_unit_test(random_calls_are_counted_exactly),
        cmocka_unit_test(contents_are_whole_in_a_mixture),
        cmocka_unit_test(unwritten_blocks_are_freed_as_others),
        cmocka_unit_test(a_debt_of_searches_stays),
        cmocka_unit_test(the_least_write_destroys_the_mark),
        cmocka_unit_test(double_frees_are_named),
        cmocka_unit_test(single_blocks_are_lent),
        cmocka_unit_test(long_blocks_come_from_other_shards_in_batches),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
