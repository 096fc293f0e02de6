/* slab/transfer with several shards: each has caches of its own, and blocks find their way home
 * (behaviours 35, 48). */
#include "transfer_unit.h"

#include <pthread.h>

#include "base/policy.h"
#include "checks/checks.h"

enum { THREADS = 3, SHARDS = 3, STEPS = 20000 };

static void shards_are_made(void **state)
{
    (void)state;
    assert_int_equal(shard_count(), 1);
    shard_init(SHARDS);
    assert_int_equal(shard_of_heap(SHARDS - 1), SHARDS - 1);
    assert_int_equal(shard_count(), SHARDS);
}

/* Of each shard, and of the other only when the own has nothing. */
static void shards_have_caches_of_their_own(void **state)
{
    (void)state;
    unsigned size_class = size_class_of(80);
    void *got[64];
    refill(size_class, 60);
    for (unsigned shard = 0; shard < SHARDS; shard++)
        assert_int_equal(take_stacked(shard, size_class, got, 64), 0);
    assert_int_equal(transfer_put(1, size_class, held, 20), 20);
    assert_int_equal(take_stacked(0, size_class, got, 64), 0);
    assert_int_equal(transfer_take_from_others(1, size_class, got, 64), 0);
    assert_int_equal(transfer_take_from_others(0, size_class, got, 15), 15);
    assert_memory_equal(got, held + 5, 15 * sizeof *got);
    assert_int_equal(transfer_blocks(size_class), 5);
    assert_true(transfer_holds(size_class, held[0]));
    assert_int_equal(transfer_put(2, size_class, held + 20, 20), 20);
    /* The next one behind the own comes first. */
    assert_int_equal(transfer_take_from_others(1, size_class, got, 64), 20);
    assert_int_equal(transfer_take_from_others(2, size_class, got, 64), 5);
    assert_int_equal(transfer_take_from_others(2, size_class, got, 64), 0);
    assert_int_equal(transfer_take_from_others(0, size_class, got, 64), 0);
    flush(size_class, held, 60);
}

/* Blocks of another shard stay with the thread that freed them. */
static void short_blocks_stay(void **state)
{
    (void)state;
    unsigned size_class = size_class_of(96);
    refill(size_class, 8);
    assert_int_equal(transfer_put(1, size_class, held, 2), 2);
    assert_int_equal(bin_of(1, size_class)->stacked, 2);
    assert_int_equal(bin_of(0, size_class)->stacked, 0);
    transfer_drain(SIZE_MAX);
    flush(size_class, held + 2, 6);
}

/* What does not fit goes to the shard that it is from. */
static void blocks_past_a_full_cache_go_home(void **state)
{
    (void)state;
    unsigned size_class = size_class_of(640), home = 30;
    unsigned most = (unsigned)(16 * 64 * KIB / 640 / SHARDS);
    refill(size_class, most + home);
    assert_int_equal(take_stacked(1, size_class, NULL, 0), 0);
    assert_int_equal(transfer_put(1, size_class, held, most + home), most + home);
    assert_int_equal(bin_of(1, size_class)->stacked, most);
    assert_int_equal(bin_of(0, size_class)->stacked, home);
    transfer_check_all();
    transfer_drain(SIZE_MAX);
    sweep_purge(SIZE_MAX);
    assert_int_equal(bin_of(0, size_class)->slab_count, 0);
}

/* Blocks of several shards in one batch lie together; a drain brings each to its own bin. */
static void a_drain_brings_all_home(void **state)
{
    (void)state;
    enum { COUNT = 9 };
    unsigned size_class = size_class_of(10000);
    for (unsigned i = 0; i < COUNT; i++)
        assert_int_equal(bin_refill(i % SHARDS, size_class, &held[i], 1, 1, REFILL_MAP), 1);
    assert_int_equal(transfer_put(0, size_class, held, COUNT), COUNT);
    assert_int_equal(bin_of(0, size_class)->stacked, COUNT);
    transfer_check_all();
    transfer_drain(SIZE_MAX);
    sweep_purge(SIZE_MAX);
    for (unsigned shard = 0; shard < SHARDS; shard++)
        assert_int_equal(bin_of(shard, size_class)->slab_count, 0);
}

/* A block of a twin class lies with shards that allocate such. */
static void twins_do_not_meet(void **state)
{
    (void)state;
    unsigned even = size_class_of(32), odd = size_class_for_shard(even, 1);
    assert_int_not_equal(even, odd);
    refill(even, 10);
    assert_int_equal(transfer_put(1, even, held, 10), 10);
    assert_int_equal(bin_of(1, even)->stacked, 0);
    assert_int_equal(bin_of(0, even)->stacked, 10);
    assert_int_equal(transfer_put(2, even, held, 0), 0);
    transfer_check_all();
    transfer_drain(SIZE_MAX);
}

/* Each thread stamps what it takes and checks the stamps before it puts back. */
static void *exchange(void *argument)
{
    unsigned class = size_class_of(320), count = 0;
    uint64_t random = (uintptr_t)argument + 7;
    void *mine[256];
    for (int step = 0; step < STEPS; step++) {
        unsigned batch = 1 + unit_below(&random, 64);
        if (unit_below(&random, 2) && count + batch <= 256) {
            unsigned got = take_stacked(0, class, mine + count, batch);
            if (!got)
                got = bin_refill(
                    (unsigned)(uintptr_t)argument, class, mine + count, batch, 1, REFILL_MAP);
            for (unsigned i = count; i < count + got; i++)
                memset(mine[i], (int)(uintptr_t)argument + 1, 320);
            count += got;
        } else if (count >= batch) {
            count -= batch;
            for (unsigned i = count; i < count + batch; i++)
                CHECK(unit_all_bytes(mine[i], 320, (unsigned char)((uintptr_t)argument + 1)));
            unsigned kept = transfer_put(0, class, mine + count, batch);
            bin_flush(0, class, mine + count + kept, batch - kept);
        }
        if (step % 1000 == 0)
            tick();
    }
    bin_flush(0, class, mine, count);
    return NULL;
}

static void threads_share_a_cache(void **state)
{
    (void)state;
    pthread_t thread[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, exchange, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    transfer_check_all();
    transfer_drain(SIZE_MAX);
    bin_check_all();
    sweep_purge(SIZE_MAX);
    for (unsigned shard = 0; shard < THREADS; shard++)
        assert_int_equal(bin_of(shard, size_class_of(320))->slab_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_are_made),
        cmocka_unit_test(shards_have_caches_of_their_own),
        cmocka_unit_test(short_blocks_stay),
        cmocka_unit_test(blocks_past_a_full_cache_go_home),
        cmocka_unit_test(a_drain_brings_all_home),
        cmocka_unit_test(twins_do_not_meet),
        cmocka_unit_test(threads_share_a_cache),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
