/* slab/depot: blocks come out as they went in, within the bound; what lay unused spills; what is no
 * start of a block is refused (behaviours 24, 35). */
#include "unit.h"

#include <pthread.h>

#include "api/alloc.h"
#include "base/policy.h"
#include "slab/bin.h"
#include "slab/depot.h"
#include "span/page_heap.h"

enum { MOST = 20000, THREADS = 3, STEPS = 20000 };

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
    assert_int_equal(depot_take(class, got, 64), 0);
    assert_int_equal(depot_put(class, held, 60), 60);
    assert_int_equal(depot_put(class, held + 60, 40), 40);
    assert_int_equal(depot_blocks(class), 100);
    depot_check_all();
    assert_true(depot_holds(class, held[17]));
    assert_int_equal(depot_take(class, got, 64), 64);
    assert_memory_equal(got, held + 36, sizeof got);
    assert_false(depot_holds(class, held[36]));
    assert_int_equal(depot_take(class, got, 64), 36);
    assert_memory_equal(got, held, 36 * sizeof *got);
    assert_int_equal(depot_blocks(class), 0);
    flush(class, held, 100);
    assert_int_equal(bin_of(0, class)->slab_count, 0);
}

/* Sixteen times as much as the longest magazine, and no more than 2048 blocks. */
static void a_depot_is_bounded(void **state)
{
    (void)state;
    static const struct {
        size_t size;
        unsigned most;
    } bounds[] = {{16, 2048}, {512, 2048}, {1024, 1024}, {32768, 32}};
    policy.magazine_kib = 64;
    for (size_t i = 0; i < ARRAY_LENGTH(bounds); i++) {
        unsigned class = size_class_of(bounds[i].size), most = bounds[i].most;
        refill(class, most + 10);
        assert_int_equal(depot_put(class, held, most - 5), most - 5);
        assert_int_equal(depot_put(class, held + most - 5, 15), 5);
        assert_int_equal(depot_put(class, held + most, 10), 0);
        depot_check_all();
        flush(class, held + most, 10);
        assert_true(depot_spill());
        assert_false(depot_spill());
        assert_int_equal(depot_blocks(class), 0);
        assert_int_equal(bin_of(0, class)->slab_count, 0);
    }
    /* A bound that sinks below what is there lets nothing in, and loses nothing. */
    unsigned class = size_class_of(1024);
    refill(class, 1000);
    assert_int_equal(depot_put(class, held, 900), 900);
    policy.magazine_kib = 16;
    assert_int_equal(depot_put(class, held + 900, 100), 0);
    assert_int_equal(depot_take(class, held, 900), 900);
    policy.magazine_kib = 64;
    flush(class, held, 1000);
}

/* A tick, and all of what it left to do; true when that was anything. */
static bool tick(void)
{
    bool any = false;
    depot_tick();
    while (depot_step())
        any = true;
    return any;
}

static void ticks_spill_what_lay_unused(void **state)
{
    (void)state;
    unsigned class = size_class_of(48);
    void *got[300];
    refill(class, 1000);
    assert_int_equal(depot_put(class, held, 1000), 1000);
    assert_false(tick());
    assert_int_equal(depot_blocks(class), 1000);
    assert_int_equal(depot_take(class, got, 300), 300);
    assert_int_equal(depot_put(class, got, 300), 300);
    assert_true(tick());
    /* No more than 300 were needed. */
    assert_int_equal(depot_blocks(class), 300);
    unsigned spilled = 0;
    for (unsigned i = 0; i < 1000; i++) {
        bool free = bin_block_is_free(held[i], "test");
        CHECK(free != depot_holds(class, held[i]));
        spilled += free;
    }
    assert_int_equal(spilled, 700);
    assert_true(tick());
    assert_int_equal(depot_blocks(class), 0);
    assert_int_equal(bin_of(0, class)->slab_count, 0);
}

/* A second copy of a block that left the depot with its slab is a double free, not a crash. */
static void spill_again(void *block)
{
    (void)block;
    depot_spill();
}

static void put_288(void *block)
{
    depot_put(size_class_of(288), &block, 1);
}

static void a_block_without_a_slab_is_named(void **state)
{
    (void)state;
    char line[200];
    unsigned class = size_class_of(288);
    refill(class, 1);
    assert_int_equal(depot_put(class, held, 1), 1);
    flush(class, held, 1);
    assert_null(slab_lookup(held[0]));
    snprintf(line, sizeof line, "hakmem: free(): double free of %p", held[0]);
    unit_expect_abort(spill_again, NULL, line);
    assert_int_equal(depot_take(class, held, 1), 1);
    char *inside = (char *)held[0] + 16;
    snprintf(line, sizeof line, "hakmem: free(): double free of %p", (void *)inside);
    unit_expect_abort(put_288, inside, line);
}

/* Memory does not grow for one class while the depot of another has some. */
static void growth_takes_from_other_depots(void **state)
{
    (void)state;
    unsigned small = size_class_of(512);
    unsigned count = 8192;
    for (unsigned i = 0; i < count; i++)
        assert_non_null(held[i] = alloc(512));
    for (unsigned i = 0; i < count; i++)
        release(held[i]);
    unsigned full = depot_blocks(small);
    assert_int_equal(full, 2048);
    uint64_t superslabs = page_heap_stats().superslabs;
    unsigned blocks = (unsigned)((superslabs * REGION_SIZE - 768 * KIB) / 1024);
    for (unsigned i = 0; i < blocks; i++)
        assert_non_null(held[i] = alloc(1024));
    assert_int_equal(page_heap_stats().superslabs, superslabs);
    /* Some may have come later, from the magazine that lay idle. */
    assert_true(depot_blocks(small) < full / 2);
    for (unsigned i = 0; i < blocks; i++)
        release(held[i]);
}

static void put(void *block)
{
    depot_put(size_class_of(128), &block, 1);
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
    /* A freed block that lies in the depot is known to be free. */
    for (unsigned i = 0; i < count; i++) {
        assert_non_null(held[i] = alloc(128));
        memset(held[i], 1, 128);
    }
    for (unsigned i = 0; i < count; i++)
        release(held[i]);
    unsigned cached = 0;
    while (cached < count && !depot_holds(class, held[cached]))
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
            unsigned got = depot_take(class, mine + count, batch);
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
            unsigned kept = depot_put(class, mine + count, batch);
            bin_flush(0, class, mine + count + kept, batch - kept);
        }
        if (step % 1000 == 0)
            tick();
    }
    bin_flush(0, class, mine, count);
    return NULL;
}

static void threads_share_a_depot(void **state)
{
    (void)state;
    pthread_t thread[THREADS];
    shard_init(THREADS);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, exchange, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    depot_check_all();
    depot_spill();
    bin_check_all();
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
        cmocka_unit_test(a_depot_is_bounded),
        cmocka_unit_test(ticks_spill_what_lay_unused),
        cmocka_unit_test(a_block_without_a_slab_is_named),
        cmocka_unit_test(growth_takes_from_other_depots),
        cmocka_unit_test(misuse_is_named),
        cmocka_unit_test(threads_share_a_depot),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
