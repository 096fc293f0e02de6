/* slab/transfer: blocks come out as they went in, within the bound; what lay unused is drained;
 * what is no start of a block is refused (behaviours 24, 35). */
#include "unit.h"

#include <pthread.h>

#include "api/alloc.h"
#include "base/policy.h"
#include "slab/shard.h"
#include "slab/sweep.h"
#include "span/page_heap.h"

enum { MOST = 20000, THREADS = 3, SHARDS = 3, STEPS = 20000 };

static void *held[MOST];

/* Takes blocks of the class from the bins, past all caches. */
static void refill(unsigned class, unsigned count)
{
    for (unsigned got = 0; got < count;)
        got += bin_refill(0, class, held + got, count - got, REFILL_MAP);
}

static void flush(unsigned class, void **blocks, unsigned count)
{
    for (unsigned done = 0; done < count; done++)
        bin_flush(0, class, &blocks[done], 1);
}

static void the_last_in_are_the_first_out(void **state)
{
    (void)state;
    unsigned class = size_class_of(100);
    void *got[64];
    refill(class, 100);
    assert_int_equal(transfer_take(0, class, got, 64), 0);
    assert_int_equal(transfer_put(0, class, held, 60), 60);
    assert_int_equal(transfer_put(0, class, held + 60, 40), 40);
    assert_int_equal(transfer_blocks(class), 100);
    transfer_check_all();
    assert_true(transfer_holds(class, held[17]));
    assert_int_equal(transfer_take(0, class, got, 64), 64);
    assert_memory_equal(got, held + 36, sizeof got);
    assert_false(transfer_holds(class, held[36]));
    assert_int_equal(transfer_take(0, class, got, 64), 36);
    assert_memory_equal(got, held, 36 * sizeof *got);
    assert_int_equal(transfer_blocks(class), 0);
    flush(class, held, 100);
    sweep_everything();
    assert_int_equal(bin_of(0, class)->slab_count, 0);
}

/* Sixteen times as much as the longest magazine, four times that above 1 KiB, and no more than 2048
 * blocks. */
static void a_cache_is_bounded(void **state)
{
    (void)state;
    static const struct {
        size_t size;
        unsigned most;
    } bounds[] = {{16, 2048}, {512, 2048}, {1024, 1024}, {32768, 128}};
    policy.magazine_kib = 64;
    for (size_t i = 0; i < ARRAY_LENGTH(bounds); i++) {
        unsigned class = size_class_of(bounds[i].size), most = bounds[i].most;
        refill(class, most + 10);
        assert_int_equal(transfer_put(0, class, held, most - 5), most - 5);
        assert_int_equal(transfer_put(0, class, held + most - 5, 15), 5);
        assert_int_equal(transfer_put(0, class, held + most, 10), 0);
        transfer_check_all();
        flush(class, held + most, 10);
        assert_true(transfer_drain());
        assert_false(transfer_drain());
        assert_int_equal(transfer_blocks(class), 0);
        sweep_everything();
        assert_int_equal(bin_of(0, class)->slab_count, 0);
    }
    /* A bound that sinks below what is there lets nothing in, and loses nothing. */
    unsigned class = size_class_of(1024);
    refill(class, 1000);
    assert_int_equal(transfer_put(0, class, held, 900), 900);
    policy.magazine_kib = 16;
    assert_int_equal(transfer_put(0, class, held + 900, 100), 0);
    assert_int_equal(transfer_take(0, class, held, 900), 900);
    policy.magazine_kib = 64;
    flush(class, held, 1000);
}

/* They have 32 times the room there, and what came in before does not have to go. */
static void single_blocks_have_room_where_cpus_have_several_threads(void **state)
{
    (void)state;
    unsigned single = size_class_of(256 * KIB), tiny = size_class_of(16);
    policy.magazine_kib = 4;
    refill(single, 20);
    assert_int_equal(transfer_put(0, single, held, 10), 0);
    transfer_set_crowded(true);
    assert_int_equal(transfer_put(0, single, held, 10), 8);
    transfer_set_crowded(false);
    assert_int_equal(transfer_put(0, single, held + 8, 2), 0);
    transfer_check_all();
    assert_int_equal(transfer_take(0, single, held, 10), 8);
    flush(single, held, 20);
    transfer_set_crowded(true);
    refill(tiny, 2100);
    policy.magazine_kib = 64;
    assert_int_equal(transfer_put(0, tiny, held, 2100), 2048);
    transfer_set_crowded(false);
    assert_true(transfer_drain());
    flush(tiny, held + 2048, 52);
    sweep_everything();
}

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
        assert_int_equal(transfer_take(shard, size_class, got, 64), 0);
    assert_int_equal(transfer_put(1, size_class, held, 20), 20);
    assert_int_equal(transfer_take(0, size_class, got, 64), 0);
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

/* Blocks of another shard lie where somebody asks for such, until a tick passes without that. */
static void nothing_lies_where_nobody_asks(void **state)
{
    (void)state;
    unsigned size_class = size_class_of(96);
    void *got[8];
    refill(size_class, 8);
    assert_int_equal(transfer_put(1, size_class, held, 2), 2);
    assert_int_equal(transfer_of(0, size_class)->count, 2);
    assert_int_equal(transfer_take(1, size_class, got, 8), 0);
    assert_int_equal(transfer_put(1, size_class, held + 2, 2), 2);
    assert_int_equal(transfer_of(1, size_class)->count, 2);
    transfer_tick();
    assert_int_equal(transfer_put(1, size_class, held + 4, 2), 2);
    assert_int_equal(transfer_of(1, size_class)->count, 2);
    assert_int_equal(transfer_of(0, size_class)->count, 4);
    transfer_drain();
    flush(size_class, held + 6, 2);
}

/* What does not fit goes to the shard that it is from. */
static void blocks_past_a_full_cache_go_home(void **state)
{
    (void)state;
    unsigned size_class = size_class_of(640), home = 30;
    unsigned most = (unsigned)(16 * 64 * KIB / 640 / SHARDS);
    refill(size_class, most + home);
    assert_int_equal(transfer_take(1, size_class, NULL, 0), 0);
    assert_int_equal(transfer_put(1, size_class, held, most + home), most + home);
    assert_int_equal(transfer_of(1, size_class)->count, most);
    assert_int_equal(transfer_of(0, size_class)->count, home);
    transfer_check_all();
    transfer_drain();
    sweep_everything();
    assert_int_equal(bin_of(0, size_class)->slab_count, 0);
}

/* Those of a shard come to the front, and go to that shard, who ever asks for such. */
static void long_blocks_go_home(void **state)
{
    (void)state;
    unsigned size_class = size_class_of(10000), tiny = size_class_of(112);
    void *got[8];
    unsigned homes[] = {0, 1, 1, 0, 1};
    for (unsigned i = 0; i < ARRAY_LENGTH(homes); i++)
        assert_int_equal(bin_refill(homes[i], size_class, &held[i], 1, REFILL_MAP), 1);
    memcpy(got, held, sizeof got);
    assert_int_equal(transfer_gather(1, tiny, held, 5), 5);
    assert_int_equal(transfer_gather(1, size_class, held, 5), 2);
    void *gathered[] = {got[0], got[3], got[1], got[2], got[4]};
    for (unsigned i = 0; i < 2; i++)
        assert_ptr_equal(held[i], gathered[i]);
    assert_int_equal(transfer_gather(1, size_class, held + 2, 3), 3);
    for (unsigned shard = 0; shard < 2; shard++)
        assert_int_equal(transfer_take(shard, size_class, got, 8), 0);
    assert_int_equal(transfer_put(1, size_class, held, 2), 2);
    assert_int_equal(transfer_put(0, size_class, held + 2, 3), 3);
    assert_int_equal(transfer_of(0, size_class)->count, 2);
    assert_int_equal(transfer_of(1, size_class)->count, 3);
    transfer_check_all();
    transfer_drain();
}

/* A block of a twin class lies with shards that allocate such. */
static void twins_do_not_meet(void **state)
{
    (void)state;
    unsigned even = size_class_of(32), odd = size_class_for_shard(even, 1);
    assert_int_not_equal(even, odd);
    refill(even, 10);
    assert_int_equal(transfer_put(1, even, held, 10), 10);
    assert_int_equal(transfer_of(1, even)->count, 0);
    assert_int_equal(transfer_of(0, even)->count, 10);
    assert_int_equal(transfer_put(2, even, held, 0), 0);
    transfer_check_all();
    transfer_drain();
}

/* A tick, and all of what it left to do; true when that was anything. */
static bool tick(void)
{
    bool any = false;
    transfer_tick();
    while (transfer_step())
        any = true;
    return any;
}

static void ticks_drain_what_lay_unused(void **state)
{
    (void)state;
    unsigned class = size_class_of(48);
    void *got[300];
    refill(class, 1000);
    assert_int_equal(transfer_put(0, class, held, 1000), 1000);
    assert_false(tick());
    assert_int_equal(transfer_blocks(class), 1000);
    assert_int_equal(transfer_take(0, class, got, 300), 300);
    assert_int_equal(transfer_put(0, class, got, 300), 300);
    assert_true(tick());
    /* No more than 300 were needed. */
    assert_int_equal(transfer_blocks(class), 300);
    unsigned drained = 0;
    for (unsigned i = 0; i < 1000; i++) {
        bool free = bin_block_is_free(held[i], "test");
        CHECK(free != transfer_holds(class, held[i]));
        drained += free;
    }
    assert_int_equal(drained, 700);
    assert_true(tick());
    assert_int_equal(transfer_blocks(class), 0);
    sweep_everything();
    assert_int_equal(bin_of(0, class)->slab_count, 0);
}

/* A second copy of a block that left the cache with its slab is a double free, not a crash. */
static void drain_again(void *block)
{
    (void)block;
    transfer_drain();
}

static void put_288(void *block)
{
    transfer_put(0, size_class_of(288), &block, 1);
}

static void a_block_without_a_slab_is_named(void **state)
{
    (void)state;
    char line[200];
    unsigned class = size_class_of(288);
    refill(class, 1);
    assert_int_equal(transfer_put(0, class, held, 1), 1);
    flush(class, held, 1);
    assert_null(slab_lookup(held[0]));
    snprintf(line, sizeof line, "hakmem: free(): double free of %p", held[0]);
    unit_expect_abort(drain_again, NULL, line);
    assert_int_equal(transfer_take(0, class, held, 1), 1);
    char *inside = (char *)held[0] + 16;
    snprintf(line, sizeof line, "hakmem: free(): double free of %p", (void *)inside);
    unit_expect_abort(put_288, inside, line);
}

/* Memory does not grow for one class while the cache of another has some. */
static void growth_takes_from_other_caches(void **state)
{
    (void)state;
    unsigned small = size_class_of(512);
    unsigned count = 8192;
    for (unsigned i = 0; i < count; i++)
        assert_non_null(held[i] = alloc(512));
    for (unsigned i = 0; i < count; i++)
        release(held[i]);
    unsigned full = transfer_blocks(small);
    assert_int_equal(full, 2048);
    uint64_t superslabs = page_heap_stats().superslabs;
    unsigned blocks = (unsigned)((superslabs * REGION_SIZE - 768 * KIB) / 1024);
    for (unsigned i = 0; i < blocks; i++)
        assert_non_null(held[i] = alloc(1024));
    assert_int_equal(page_heap_stats().superslabs, superslabs);
    /* Some may have come later, from the magazine that lay idle. */
    assert_true(transfer_blocks(small) < full / 2);
    for (unsigned i = 0; i < blocks; i++)
        release(held[i]);
}

static void put(void *block)
{
    transfer_put(0, size_class_of(128), &block, 1);
}

static void free_again(void *block)
{
    release(block);
}

static void misuse_is_named(void **state)
{
    (void)state;
    char line[200];
    unsigned class = size_class_of(128), count = 2000;
    refill(class, 1);
    char *inside = (char *)held[0] + 32;
    snprintf(
        line, sizeof line, "hakmem: free(): invalid pointer %p: inside a block of 128 bytes at %p",
        (void *)inside, held[0]);
    unit_expect_abort(put, inside, line);
    snprintf(
        line, sizeof line, "hakmem: free(): invalid pointer %p: misaligned", (void *)(inside + 1));
    unit_expect_abort(put, inside + 1, line);
    flush(class, held, 1);
    /* A freed block that lies in the cache is known to be free. */
    for (unsigned i = 0; i < count; i++) {
        assert_non_null(held[i] = alloc(128));
        memset(held[i], 1, 128);
    }
    for (unsigned i = 0; i < count; i++)
        release(held[i]);
    unsigned cached = 0;
    while (cached < count && !transfer_holds(class, held[cached]))
        cached++;
    assert_true(cached < count);
    snprintf(line, sizeof line, "hakmem: free(): double free of %p", held[cached]);
    unit_expect_abort(free_again, held[cached], line);
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
            unsigned got = transfer_take(0, class, mine + count, batch);
            if (!got)
                got = bin_refill(
                    (unsigned)(uintptr_t)argument, class, mine + count, batch, REFILL_MAP);
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
    transfer_drain();
    bin_check_all();
    sweep_everything();
    for (unsigned shard = 0; shard < THREADS; shard++)
        assert_int_equal(bin_of(shard, size_class_of(320))->slab_count, 0);
}

static int start(void **state)
{
    (void)state;
    return page_heap_init() ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_in_are_the_first_out),
        cmocka_unit_test(a_cache_is_bounded),
        cmocka_unit_test(single_blocks_have_room_where_cpus_have_several_threads),
        cmocka_unit_test(ticks_drain_what_lay_unused),
        cmocka_unit_test(a_block_without_a_slab_is_named),
        cmocka_unit_test(growth_takes_from_other_caches),
        cmocka_unit_test(misuse_is_named),
        cmocka_unit_test(shards_are_made),
        cmocka_unit_test(shards_have_caches_of_their_own),
        cmocka_unit_test(nothing_lies_where_nobody_asks),
        cmocka_unit_test(blocks_past_a_full_cache_go_home),
        cmocka_unit_test(long_blocks_go_home),
        cmocka_unit_test(twins_do_not_meet),
        cmocka_unit_test(threads_share_a_cache),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
