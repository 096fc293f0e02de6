/* observe/stats and compat/figures: figures that do not fit together, as they may be read while
 * threads work. None may come out below zero, which is next to 2^64. */
#include "unit.h"

#include "api/alloc.h"
#include "compat/figures.h"
#include "slab/shard.h"

/* Frees that were seen of blocks whose malloc was not. */
static void more_frees_than_mallocs_leave_none_alive(void **state)
{
    enum { SIZE = 5000, UNSEEN = 100 };
    struct hakmem_usage usage;
    struct snapshot now;
    (void)state;
    release(alloc(SIZE));
    unsigned size_class = size_class_of(SIZE);
    ATOMIC_ADD_RELAXED(&bin_of(0, size_class)->direct_blocks, UNSEEN);
    stats_collect_class(size_class, &usage);
    assert_true(usage.free_calls > usage.malloc_calls);
    assert_int_equal(usage.live_blocks, 0);
    assert_int_equal(usage.live_bytes, 0);
    stats_collect(&now);
    assert_true(now.tier[HAKMEM_TIER_MID].live_bytes < SIZE * UNSEEN);
    assert_true(now.total.live_bytes < TIB);
    ATOMIC_ADD_RELAXED(&bin_of(0, size_class)->direct_blocks, -UNSEEN);
}

static void differences_are_not_below_zero(void **state)
{
    struct snapshot now = {0};
    (void)state;
    assert_int_equal(stats_difference(3, 2), 1);
    assert_int_equal(stats_difference(2, 3), 0);
    now.total.mapped_bytes = 10 * MIB;
    now.total.live_bytes = 13 * MIB;
    now.total.committed_bytes = 11 * MIB;
    now.tier[HAKMEM_TIER_BIG].live_bytes = 2 * MIB;
    assert_int_equal(stats_arena(&now), 8 * MIB);
    assert_int_equal(stats_arena_live(&now), 11 * MIB);
    assert_int_equal(stats_arena_free(&now), 0);
    assert_int_equal(figures_unused_addresses(&now.total), 0);
    now.total.live_bytes = 5 * MIB;
    assert_int_equal(stats_arena_free(&now), 5 * MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_frees_than_mallocs_leave_none_alive),
        cmocka_unit_test(differences_are_not_below_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
