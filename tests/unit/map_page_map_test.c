/* map/page_map, the complete map: regions anywhere in the user address space. The addresses are
 * made up, nothing is mapped there; the map never looks at them. */
#include "unit.h"

#include <pthread.h>

#include "checks/checks.h"
#include "map/page_map.h"
#include "os/os.h"

enum { REGIONS = 400, THREADS = 4 };

static const uintptr_t space_end = (uintptr_t)1 << 48;

static struct region regions[REGIONS];
static bool registered[REGIONS];

static void *pointer(uintptr_t address)
{
    return (void *)address;
}

static void nothing_is_known_at_first(void **state)
{
    (void)state;
    uint64_t random = 1;
    int local = 0;
    assert_null(page_map_lookup(NULL));
    assert_null(page_map_lookup(&local));
    assert_null(page_map_lookup(&random));
    for (int i = 0; i < 10000; i++)
        CHECK(page_map_lookup(pointer(unit_random(&random))) == NULL);
}

static void check_region(const struct region *region, const struct region *expected)
{
    uintptr_t base = (uintptr_t)region->base;
    CHECK(page_map_lookup(pointer(base)) == expected);
    CHECK(page_map_lookup(pointer(base + 1)) == expected);
    CHECK(page_map_lookup(pointer(base + REGION_SIZE / 2)) == expected);
    CHECK(page_map_lookup(pointer(base + REGION_SIZE - 1)) == expected);
}

static void edges_of_the_address_space(void **state)
{
    (void)state;
    static const uintptr_t bases[] = {
        0,
        REGION_SIZE,
        ((uintptr_t)1 << 34) - REGION_SIZE,
        (uintptr_t)1 << 34,
        ((uintptr_t)1 << 47) - REGION_SIZE,
        ((uintptr_t)1 << 48) - REGION_SIZE};
    for (size_t i = 0; i < ARRAY_LENGTH(bases); i++) {
        struct region region = {REGION_BIG, pointer(bases[i])};
        assert_true(page_map_prepare(region.base));
        check_region(&region, NULL);
        page_map_register(&region);
        check_region(&region, &region);
        assert_null(page_map_lookup(pointer(bases[i] + REGION_SIZE)));
        assert_null(page_map_lookup(pointer(bases[i] - 1)));
        page_map_unregister(&region);
        check_region(&region, NULL);
    }
}

static void beyond_the_address_space_nothing_is_ours(void **state)
{
    (void)state;
    struct region low = {REGION_SUPERSLAB, pointer(5 * REGION_SIZE)};
    assert_true(page_map_prepare(low.base));
    page_map_register(&low);
    for (int bit = 48; bit < 64; bit++)
        assert_null(page_map_lookup(pointer((uintptr_t)low.base | (uintptr_t)1 << bit)));
    assert_null(page_map_lookup(pointer(space_end)));
    assert_null(page_map_lookup(pointer(UINTPTR_MAX)));
    page_map_unregister(&low);
}

static void regions_come_and_go(void **state)
{
    (void)state;
    uint64_t random = 5;
    for (unsigned i = 0; i < REGIONS; i++) {
        /* Half of them crowd one leaf, the others lie anywhere; no two at the same place. */
        uintptr_t unit =
            i % 2 ? ((uintptr_t)7 << 13) + i
                  : unit_random(&random) % (space_end >> REGION_SHIFT) / REGIONS * REGIONS + i;
        regions[i] = (struct region){REGION_BIG, pointer(unit << REGION_SHIFT)};
    }
    for (int step = 0; step < 5000; step++) {
        unsigned i = unit_below(&random, REGIONS);
        if (registered[i]) {
            page_map_unregister(&regions[i]);
        } else {
            CHECK(page_map_prepare(regions[i].base));
            page_map_register(&regions[i]);
        }
        registered[i] = !registered[i];
        check_region(&regions[i], registered[i] ? &regions[i] : NULL);
        if (step % 50 == 0)
            for (unsigned r = 0; r < REGIONS; r++)
                check_region(&regions[r], registered[r] ? &regions[r] : NULL);
    }
    page_map_check();
}

/* A region may start behind the start of its 2 MiB; the nearest one at or below an address is
 * what it may lie in. */
static void regions_start_anywhere(void **state)
{
    (void)state;
    struct region low = {REGION_BIG, pointer(40 * REGION_SIZE + 5 * 4096)};
    struct region high = {REGION_BIG, pointer(43 * REGION_SIZE + 9 * 4096)};
    assert_true(page_map_prepare(low.base) && page_map_prepare(high.base));
    page_map_register(&low);
    page_map_register(&high);
    assert_ptr_equal(page_map_lookup(low.base), &low);
    assert_ptr_equal(page_map_lookup(pointer(43 * REGION_SIZE)), &high);
    assert_ptr_equal(page_map_nearest(high.base), &high);
    assert_ptr_equal(page_map_nearest(high.base - 1), &low);
    assert_ptr_equal(page_map_nearest(pointer(42 * REGION_SIZE)), &low);
    assert_ptr_equal(page_map_nearest(low.base), &low);
    assert_ptr_not_equal(page_map_nearest(low.base - 1), &low);
    page_map_unregister(&low);
    page_map_unregister(&high);
}

/* A spare makes the map ready for an address that nobody knew before; an unused one is kept. */
static void a_spare_serves_any_address(void **state)
{
    (void)state;
    struct page_map_spare spare;
    for (uintptr_t i = 0; i < 20; i++) {
        struct region region = {REGION_BIG, pointer((i / 2 + 900) << 34)};
        assert_true(page_map_take_spare(&spare));
        page_map_prepare_by_spare(&spare, region.base);
        page_map_register(&region);
        check_region(&region, &region);
        page_map_unregister(&region);
    }
    uint64_t maps = os_counts[OS_MMAP];
    assert_true(page_map_take_spare(&spare));
    page_map_prepare_by_spare(&spare, pointer((uintptr_t)900 << 34));
    assert_int_equal(os_counts[OS_MMAP], maps);
}

/* All threads work in the same leaves, each on addresses of its own: a leaf that were installed
 * twice would lose entries. */
static void *register_many(void *argument)
{
    uintptr_t thread = (uintptr_t)argument;
    struct region mine[64];
    for (unsigned i = 0; i < ARRAY_LENGTH(mine); i++) {
        uintptr_t leaf = 64 + i;
        uintptr_t base = (leaf << 34) + thread * REGION_SIZE;
        mine[i] = (struct region){REGION_BIG, pointer(base)};
        CHECK(page_map_prepare(mine[i].base));
        page_map_register(&mine[i]);
    }
    for (unsigned i = 0; i < ARRAY_LENGTH(mine); i++) {
        check_region(&mine[i], &mine[i]);
        page_map_unregister(&mine[i]);
    }
    return NULL;
}

static void threads_install_leaves_together(void **state)
{
    (void)state;
    pthread_t thread[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, register_many, pointer(i)), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_known_at_first),
        cmocka_unit_test(edges_of_the_address_space),
        cmocka_unit_test(beyond_the_address_space_nothing_is_ours),
        cmocka_unit_test(regions_come_and_go),
        cmocka_unit_test(regions_start_anywhere),
        cmocka_unit_test(a_spare_serves_any_address),
        cmocka_unit_test(threads_install_leaves_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
