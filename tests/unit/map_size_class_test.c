/* map/size_class: every size, every offset of every slab, every alignment. */
#include "unit.h"

#include "map/size_class.h"

static void every_size_gets_the_smallest_class_that_fits(void **state)
{
    (void)state;
    assert_int_equal(size_class_of(0), 1);
    for (size_t size = 1; size <= MID_MAX; size++) {
        unsigned class = size_class_of(size);
        CHECK(class > CLASS_NONE && class <= SIZE_COUNT);
        CHECK(size_classes[class].size >= size);
        CHECK(size_classes[class - 1].size < size);
        CHECK((size <= TINY_MAX) == (class <= TINY_CLASS_LAST));
    }
}

static void classes_are_what_the_header_promises(void **state)
{
    (void)state;
    assert_int_equal(size_classes[CLASS_NONE].size, 0);
    assert_int_equal(size_classes[TINY_CLASS_LAST].size, TINY_MAX);
    assert_int_equal(size_classes[LONG_CLASS_FIRST - 1].size, 4096);
    assert_int_equal(size_classes[SIZE_COUNT].size, MID_MAX);
    for (unsigned class = 1; class <= SIZE_COUNT; class ++) {
        const struct size_class *entry = &size_classes[class];
        size_t slab = entry->units * UNIT_SIZE;
        CHECK(entry->size % MIN_ALIGNMENT == 0);
        CHECK(entry->size > size_classes[class - 1].size);
        CHECK(entry->units == 1 || entry->units == 2 || entry->units == 4);
        CHECK(entry->blocks == slab / entry->size);
        CHECK(entry->blocks >= 4);
        /* Rounding up wastes less than 16 bytes or one ninth. */
        size_t waste = entry->size - (size_classes[class - 1].size + 1u);
        CHECK(waste < 16 || waste * 9 <= entry->size);
    }
}

/* Exactly the classes that are smaller than a cache line have a twin, for the odd shards. */
static void small_classes_have_twins(void **state)
{
    (void)state;
    for (unsigned class = 1; class <= SIZE_COUNT; class ++) {
        unsigned twin = size_class_for_shard(class, 5);
        CHECK(size_class_for_shard(class, 4) == class);
        CHECK((twin != class) == (size_classes[class].size < 64));
        CHECK(twin < CLASS_COUNT && size_classes[twin].size == size_classes[class].size);
        CHECK(size_classes[twin].blocks == size_classes[class].blocks);
        CHECK(size_classes[twin].reciprocal == size_classes[class].reciprocal);
    }
}

static void the_reciprocal_divides_every_offset_exactly(void **state)
{
    (void)state;
    for (unsigned class = 1; class < CLASS_COUNT; class ++) {
        size_t size = size_classes[class].size, slab = size_classes[class].units * UNIT_SIZE;
        for (size_t offset = 0; offset < slab; offset++)
            CHECK(size_class_index(class, offset) == offset / size);
    }
}

static void the_inverse_tells_multiples_from_all_others(void **state)
{
    (void)state;
    for (unsigned class = 1; class < CLASS_COUNT; class ++) {
        const struct size_class *layout = &size_classes[class];
        size_t slab = layout->units * UNIT_SIZE;
        for (size_t offset = 0; offset < slab; offset++) {
            size_t index = size_class_exact_index(layout, offset);
            CHECK(offset % layout->size == 0 ? index == offset / layout->size : index > slab);
            /* What lies before the slab, or far behind it. */
            CHECK(size_class_exact_index(layout, -offset - 1) > slab);
            CHECK(size_class_exact_index(layout, offset + ((size_t)1 << 45)) > slab);
        }
    }
}

static unsigned naive_aligned(size_t size, size_t alignment)
{
    for (unsigned class = 1; class <= SIZE_COUNT; class ++)
        if (size_classes[class].size >= size && size_classes[class].size % alignment == 0)
            return class;
    return CLASS_NONE;
}

static void aligned_requests_get_the_smallest_class_that_fits(void **state)
{
    (void)state;
    for (size_t alignment = 1; alignment <= MID_MAX; alignment *= 2)
        for (size_t size = 0; size <= MID_MAX; size += size < 4200 ? 1 : 37)
            CHECK(size_class_aligned(size, alignment) == naive_aligned(size, alignment));
    for (size_t alignment = 1; alignment <= MID_MAX; alignment *= 2) {
        CHECK(size_class_aligned(MID_MAX, alignment) == SIZE_COUNT);
        CHECK(size_class_aligned(MID_MAX + 1, alignment) == CLASS_NONE);
        CHECK(size_class_aligned(SIZE_MAX, alignment) == CLASS_NONE);
    }
    for (size_t alignment = 2 * MID_MAX; alignment; alignment *= 2)
        CHECK(size_class_aligned(1, alignment) == CLASS_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_gets_the_smallest_class_that_fits),
        cmocka_unit_test(small_classes_have_twins),
        cmocka_unit_test(classes_are_what_the_header_promises),
        cmocka_unit_test(the_reciprocal_divides_every_offset_exactly),
        cmocka_unit_test(the_inverse_tells_multiples_from_all_others),
        cmocka_unit_test(aligned_requests_get_the_smallest_class_that_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
