/* hardened/slab: what is in no slab of the hardened library cannot be touched, and neither can the
 * end of one that is; fresh slabs read as zero; nobody else gets of their superslabs. */
#include "unit.h"

#include "base/poison.h"
#include "checks/checks.h"
#include "hardened/fence.h"
#include "hardened/front.h"
#include "os/os.h"
#include "slab/shard.h"
#include "span/page_heap.h"

static int start(void **state)
{
    (void)state;
    hardened_start();
    return page_heap_init() ? 0 : -1;
}

static size_t bytes_of(const struct slab *slab)
{
    return slab->blocks * (size_t)size_classes[slab->size_class].size;
}

static struct slab *make(unsigned size_class)
{
    struct slab *slab = slab_create(size_class, HARDENED_SHARD, 1, true);
    assert_non_null(slab);
    slab_check(slab);
    assert_true(slab->clean);
    unpoison(slab->base, bytes_of(slab)); /* as if all blocks were handed out */
    assert_true(unit_all_bytes(slab->base, bytes_of(slab), 0));
    return slab;
}

static void slabs_end_closed(void **state)
{
    (void)state;
    size_t page = os_page_size();
    for (unsigned size_class = 1; size_class < SINGLE_CLASS_FIRST; size_class++) {
        struct slab *slab = make(size_class);
        size_t length = size_classes[size_class].units * UNIT_SIZE;
        bool closed = bytes_of(slab) + page <= length;
        /* A page as long as a unit, or that the only block needs, is too much to spare. */
        assert_true(closed || page == UNIT_SIZE || slab->blocks == 1);
        memset(slab->base, 0x55, bytes_of(slab));
        if (size_class % 16 == 1 && closed) {
            char *end = slab->base + round_up(bytes_of(slab), page);
            unit_expect_fault(end);
            unit_expect_fault(slab->base + length - 1);
        }
        slab_destroy(slab);
        if (size_class % 16 == 1)
            unit_expect_fault(superslab_address(slab->superslab, superslab_unit_of(slab->base)));
    }
}

static void what_was_used_reads_as_zero(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        struct slab *slab = make(1 + i % (SINGLE_CLASS_FIRST - 1));
        memset(slab->base, 0x55, bytes_of(slab));
        slab_destroy(slab);
    }
}

static void behind_the_blocks_is_no_block(void **state)
{
    (void)state;
    /* Of a length that leaves a rest, so that there is such a place even if all pages are open. */
    struct slab *slab = make(size_class_of(3072));
    void *behind = slab->base + bytes_of(slab);
    assert_true(bytes_of(slab) < size_classes[slab->size_class].units * UNIT_SIZE);
    assert_int_equal(slab_index(slab, slab->base + 3072, "test"), 1);
    assert_int_equal(slab_put(slab, &behind, 1), 0);
    slab_destroy(slab);
}

static void no_class_map_knows_it(void **state)
{
    (void)state;
    struct slab *slab = make(1);
    assert_int_not_equal(slab->superslab->fence, FENCE_NONE);
    assert_int_equal(class_map.limit, 0);
    slab_destroy(slab);
}

/* What comes into an empty superslab lies anywhere in it. */
static void slabs_lie_anywhere(void **state)
{
    (void)state;
    struct slab *first = make(1), *slab;
    uint32_t units = 0;
    for (unsigned i = 0; i < 20 * SUPERSLAB_UNITS; i++, slab_destroy(slab)) {
        slab = make(2);
        assert_ptr_equal(slab->superslab, first->superslab);
        units |= (uint32_t)1 << superslab_unit_of(slab->base);
    }
    assert_true(bits_count(units) > SUPERSLAB_UNITS * 3 / 4);
    slab_destroy(first);
}

static void superslabs_lie_apart(void **state)
{
    (void)state;
    /* That sanitizer has mapped the addresses that are drawn from. */
    if (HAKMEM_SANITIZE_THREAD)
        skip();
    enum { SLABS = 8 * SUPERSLAB_UNITS };
    struct slab *slabs[SLABS];
    uintptr_t last = 0;
    unsigned superslabs = 0, neighbours = 0;
    for (unsigned i = 0; i < SLABS; i++) {
        slabs[i] = make(1);
        uintptr_t base = (uintptr_t)slabs[i]->superslab->region.base;
        if (base == last)
            continue;
        superslabs++;
        neighbours += base == last - REGION_SIZE || base == last + REGION_SIZE;
        last = base;
    }
    assert_true(superslabs >= 8);
    assert_true(neighbours <= 1); /* one in 30,000 runs by chance, of half a million places */
    page_heap_check();
    for (unsigned i = 0; i < SLABS; i++)
        slab_destroy(slabs[i]);
    page_heap_purge(SIZE_MAX);
    page_heap_check();
    assert_true(page_heap_stats().superslabs <= 2);
}

/* The page map remembers where they were, and never forgets. */
static void places_are_bounded(void **state)
{
    (void)state;
    enum { ROUNDS = 400, LEAVES = 65 };
    struct slab *kept = make(1);
    size_t before = page_map_bytes();
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct slab *whole_superslab = slab_create(SIZE_COUNT, HARDENED_SHARD, 1, true);
        assert_non_null(whole_superslab);
        slab_destroy(whole_superslab);
        page_heap_purge(SIZE_MAX);
    }
    assert_true(page_map_bytes() - before <= LEAVES * sizeof(struct leaf));
    slab_destroy(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slabs_end_closed),
        cmocka_unit_test(what_was_used_reads_as_zero),
        cmocka_unit_test(behind_the_blocks_is_no_block),
        cmocka_unit_test(no_class_map_knows_it),
        cmocka_unit_test(slabs_lie_anywhere),
        cmocka_unit_test(superslabs_lie_apart),
        cmocka_unit_test(places_are_bounded),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
