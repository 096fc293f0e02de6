/* reclaim/everything: all that is free goes back, wherever it lies (behaviours 22, 40). */
#include "unit.h"

#include <pthread.h>

#include "api/alloc.h"
#include "base/policy.h"
#include "checks/walk.h"
#include "os/os.h"
#include "reclaim/engine.h"
#include "slab/shard.h"
#include "slab/transfer.h"
#include "span/big_cache.h"
#include "span/page_heap.h"

enum { BLOCKS = 3000 };

static const size_t sizes[] = {24, 500, 3000, 20000, 100000, 700000, 3 * 1024 * 1024};

static void touch(char *block, size_t size)
{
    for (size_t at = 0; at < size; at += PAGE_SIZE)
        block[at] = 1;
}

/* Fills magazines, transfer caches and bins; leaves its heap to the pool. */
static void *work(void *unused)
{
    static __thread char *blocks[BLOCKS];
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        size_t count = size_min(BLOCKS, 32 * MIB / sizes[i]);
        for (size_t round = 0; round < 3; round++) {
            for (size_t at = 0; at < count; at++)
                touch(blocks[at] = alloc(sizes[i]), sizes[i]);
            for (size_t at = 0; at < count; at++)
                release(blocks[at]);
        }
    }
    return unused;
}

static unsigned in_transfer(void)
{
    unsigned blocks = 0;
    for (unsigned size_class = 1; size_class < CLASS_COUNT; size_class++)
        blocks += transfer_blocks(size_class);
    return blocks;
}

static void flush_own(void)
{
    struct heap *heap = heap_enter();
    heap_flush(heap, SIZE_MAX);
    heap_leave(heap);
}

static void nothing_free_is_left(void **state)
{
    (void)state;
    pthread_t threads[4];
    policy.purge_delay_ms = 3600000; /* no tick gets there first */
    flush_own();
    reclaim_everything();
    size_t used = page_heap_stats().used_pages;
    for (size_t i = 0; i < ARRAY_LENGTH(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
    for (size_t i = 0; i < ARRAY_LENGTH(threads); i++)
        pthread_join(threads[i], NULL);
    work(NULL);
    assert_true(page_heap_stats().used_pages > used);
    assert_true(big_stats().cached_bytes > 0);

    flush_own();
    uint64_t before = pressure_total();
    size_t purged = reclaim_everything();
    assert_true(purged > 0);
    assert_true(pressure_total() - before >= purged);
    assert_int_equal(in_transfer(), 0);
    assert_int_equal(page_heap_stats().used_pages, used);
    assert_int_equal(page_heap_stats().dirty_free_pages, 0);
    assert_int_equal(page_heap_stats().superslabs, 1);
    assert_int_equal(big_stats().cached_bytes, 0);
    walk_all();
    /* And so at once again. */
    assert_int_equal(reclaim_everything(), 0);
}

/* Blocks in use keep their contents, and the pages that they share with nobody else go. */
static void what_is_in_use_stays(void **state)
{
    (void)state;
    enum { COUNT = 4000, SIZE = 2000 };
    static char *blocks[COUNT];
    const int kept_each = (int)(8 * os_page_size() / SIZE); /* one in eight pages */
    for (int i = 0; i < COUNT; i++)
        memset(blocks[i] = alloc(SIZE), i, SIZE);
    uint64_t before = pressure_total();
    for (int i = 0; i < COUNT; i++)
        if (i % kept_each)
            release(blocks[i]);
    flush_own();
    reclaim_everything();
    /* Some may have gone before. */
    assert_true(pressure_total() - before >= COUNT / 2 * (size_t)SIZE);
    for (int i = 0; i < COUNT; i += kept_each)
        assert_true(unit_all_bytes(blocks[i], SIZE, (unsigned char)i));
    walk_all();
    for (int i = 0; i < COUNT; i += kept_each)
        release(blocks[i]);
}

static void room_is_made_only_where_it_helps(void **state)
{
    (void)state;
    assert_true(reclaim_may_make_room(1));
    assert_true(reclaim_may_make_room(REGION_SIZE));
    assert_true(reclaim_may_make_room(64 * MIB));
    assert_false(reclaim_may_make_room((size_t)1 << 47));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_free_is_left),
        cmocka_unit_test(what_is_in_use_stays),
        cmocka_unit_test(room_is_made_only_where_it_helps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
