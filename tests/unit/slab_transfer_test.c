/* slab/transfer: blocks come out as they went in, within the bound; what lay unused is drained;
 * what is no start of a block is refused (behaviours 24, 35). */
#include "transfer_unit.h"

#include "api/alloc.h"
#include "base/policy.h"
#include "base/tuning.h"
#include "checks/checks.h"

static void the_last_in_are_the_first_out(void **state)
{
    (void)state;
    unsigned class = size_class_of(100);
    void *got[64];
    refill(class, 100);
    assert_int_equal(take_stacked(0, class, got, 64), 0);
    assert_int_equal(transfer_put(0, class, held, 60), 60);
    assert_int_equal(transfer_put(0, class, held + 60, 40), 40);
    assert_int_equal(transfer_blocks(class), 100);
    transfer_check_all();
    assert_true(transfer_holds(class, held[17]));
    assert_int_equal(take_stacked(0, class, got, 64), 64);
    assert_memory_equal(got, held + 36, sizeof got);
    assert_false(transfer_holds(class, held[36]));
    assert_int_equal(take_stacked(0, class, got, 64), 36);
    assert_memory_equal(got, held, 36 * sizeof *got);
    assert_int_equal(transfer_blocks(class), 0);
    flush(class, held, 100);
    sweep_purge(SIZE_MAX);
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
        assert_true(transfer_drain(SIZE_MAX));
        assert_false(transfer_drain(SIZE_MAX));
        assert_int_equal(transfer_blocks(class), 0);
        sweep_purge(SIZE_MAX);
        assert_int_equal(bin_of(0, class)->slab_count, 0);
    }
    /* A bound that sinks below what is there lets nothing in, and loses nothing. */
    unsigned class = size_class_of(1024);
    refill(class, 1000);
    assert_int_equal(transfer_put(0, class, held, 900), 900);
    policy.magazine_kib = 16;
    assert_int_equal(transfer_put(0, class, held + 900, 100), 0);
    assert_int_equal(take_stacked(0, class, held, 900), 900);
    policy.magazine_kib = 64;
    flush(class, held, 1000);
}

/* Freed in any order, they come back by address. Nothing comes in before somebody asks. */
static void goes_to_the_bins(unsigned class)
{
    enum { FIRST = 2048, MORE = 100, ALL = FIRST + MORE, STEP = 37 };
    unsigned freed = FIRST;
    void *mixed[ALL], *got[ALL];
    refill(class, ALL);
    for (unsigned i = 0; i < ALL; i++)
        mixed[i] = held[i * STEP % ALL];
    assert_int_equal(transfer_put(0, class, mixed, FIRST), FIRST);
    for (; freed + MORE <= TRANSFER_FREED_MAX; freed += MORE)
        assert_int_equal(transfer_put(0, class, mixed + FIRST, MORE), 0);
    for (unsigned left = transfer_blocks(class); left > 0; left = transfer_blocks(class)) {
        assert_int_equal(transfer_put(0, class, mixed + FIRST, MORE), 0);
        assert_true(transfer_blocks(class) < left);
    }
    flush(class, mixed + FIRST, MORE / 2);
    assert_int_equal(transfer_put(0, class, mixed + ALL - MORE / 2, MORE / 2), 0);
    assert_int_equal(take_stacked(0, class, got, ALL), 0);
    assert_int_equal(transfer_put(0, class, mixed + ALL - MORE / 2, MORE / 2), MORE / 2);
    assert_int_equal(take_stacked(0, class, mixed, ALL), MORE / 2);
    unsigned taken = bin_refill(0, class, got, ALL - MORE / 2, 1, REFILL_USED);
    assert_int_equal(taken, ALL - MORE / 2);
    for (unsigned i = 1; i < taken; i++)
        assert_true(got[i] < got[i - 1] || slab_lookup(got[i]) != slab_lookup(got[i - 1]));
    flush(class, got, taken);
    flush(class, mixed, MORE / 2);
    sweep_purge(SIZE_MAX);
    assert_int_equal(bin_of(0, class)->slab_count, 0);
}

static void what_nobody_asks_for_goes_to_the_bins(void **state)
{
    (void)state;
    goes_to_the_bins(size_class_of(40));
    goes_to_the_bins(size_class_for_shard(size_class_of(40), 1));
}

/* A sixteenth of the memory in use, and what came in before does not have to go. */
static void single_blocks_have_room_where_much_is_in_use(void **state)
{
    (void)state;
    unsigned single = size_class_of(256 * KIB), tiny = size_class_of(16);
    size_t used = pressure_used();
    policy.magazine_kib = 4;
    refill(single, 20);
    pressure_used_bytes = 0;
    assert_int_equal(transfer_put(0, single, held, 10), 0);
    pressure_used_bytes = 32 * MIB;
    assert_int_equal(transfer_put(0, single, held, 10), 8);
    pressure_used_bytes = 0;
    assert_int_equal(transfer_put(0, single, held + 8, 2), 0);
    transfer_check_all();
    assert_int_equal(take_stacked(0, single, held, 10), 8);
    flush(single, held, 20);
    refill(tiny, 2100);
    policy.magazine_kib = 64;
    pressure_used_bytes = GIB;
    assert_int_equal(transfer_put(0, tiny, held, 2100), 2048);
    pressure_used_bytes = used;
    assert_true(transfer_drain(SIZE_MAX));
    flush(tiny, held + 2048, 52);
    sweep_purge(SIZE_MAX);
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
    assert_int_equal(take_stacked(0, class, got, 300), 300);
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
    sweep_purge(SIZE_MAX);
    assert_int_equal(bin_of(0, class)->slab_count, 0);
}

/* The bit of a shard is set while its stack has blocks or its bin keeps empty slabs. */
static void a_bit_tells_who_has_something(void **state)
{
    (void)state;
    unsigned class = size_class_of(704);
    struct bin *bin = bin_of(0, class);
    const uint64_t *stocked = &transfer_stocked[class];
    transfer_drain(SIZE_MAX);
    assert_int_equal(*stocked, 0);
    refill(class, 1);
    bin->keep = 1;
    assert_int_equal(transfer_put(0, class, held, 1), 1);
    assert_int_equal(*stocked, 1);
    assert_true(transfer_drain(SIZE_MAX));
    assert_int_equal(bin->kept, 1);
    assert_int_equal(*stocked, 1);
    assert_int_equal(transfer_take_from_others(1, class, held, 1), 0);
    assert_true(sweep_empties());
    assert_int_equal(bin->slab_count, 0);
    assert_int_equal(*stocked, 0);
    assert_false(transfer_drain(SIZE_MAX) || sweep_empties());
}

/* A second copy of a block that left the cache with its slab is a double free, not a crash. */
static void drain_again(void *block)
{
    (void)block;
    transfer_drain(SIZE_MAX);
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
    assert_int_equal(take_stacked(0, class, held, 1), 1);
    char *inside = (char *)held[0] + 16;
    snprintf(line, sizeof line, "hakmem: free(): double free of %p", (void *)inside);
    unit_expect_abort(put_288, inside, line);
}

/* Memory does not grow for one class while the cache of another has some. */
static void growth_takes_from_other_caches(void **state)
{
    (void)state;
    unsigned small = size_class_of(512);
    unsigned count = TRANSFER_FREED_MAX; /* more would not stay in the cache */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_in_are_the_first_out),
        cmocka_unit_test(a_cache_is_bounded),
        cmocka_unit_test(what_nobody_asks_for_goes_to_the_bins),
        cmocka_unit_test(single_blocks_have_room_where_much_is_in_use),
        cmocka_unit_test(ticks_drain_what_lay_unused),
        cmocka_unit_test(a_bit_tells_who_has_something),
        cmocka_unit_test(a_block_without_a_slab_is_named),
        cmocka_unit_test(growth_takes_from_other_caches),
        cmocka_unit_test(misuse_is_named),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
