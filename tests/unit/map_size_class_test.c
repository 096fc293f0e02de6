/* map/size_class: every size, every offset of every slab, every alignment. */
#include "unit.h"

#include "map/size_class.h"

static void every_size_gets_the_smallest_class_that_fits(void **state)
{
    (void)state;
    assert_int_equal(size_class_of(0), 1);
    for (size_t size = 1; size <= LARGE_MAX; size++) {
        unsigned size_class = size_class_of(size);
        CHECK(size_class > CLASS_NONE && size_class <= SIZE_COUNT);
        CHECK(size_classes[size_class].size >= size);
        CHECK(size_classes[size_class - 1].size < size);
        CHECK((size <= TINY_MAX) == (size_class <= TINY_CLASS_LAST));
        CHECK((size <= MID_MAX) == (size_class <= MID_CLASS_LAST));
    }
}

static void classes_are_what_the_header_promises(void **state)
{
    (void)state;
    assert_int_equal(size_classes[CLASS_NONE].size, 0);
    assert_int_equal(size_classes[TINY_CLASS_LAST].size, TINY_MAX);
    assert_int_equal(size_classes[LONG_CLASS_FIRST - 1].size, 4096);
    assert_int_equal(size_classes[MID_CLASS_LAST].size, MID_MAX);
    assert_int_equal(size_classes[SIZE_COUNT].size, LARGE_MAX);
    for (unsigned size_class = 1; size_class <= SIZE_COUNT; size_class++) {
        const struct size_class *entry = &size_classes[size_class];
        size_t slab = entry->units * UNIT_SIZE;
        CHECK(entry->size % MIN_ALIGNMENT == 0);
        CHECK(entry->size > size_classes[size_class - 1].size);
        CHECK(entry->blocks == slab / entry->size);
        CHECK(entry->blocks >= (entry->size <= MID_MAX ? 4 : 1));
        CHECK((entry->size == slab) == size_class_is_single(size_class));
        CHECK(entry->units <= (entry->size <= MID_MAX ? 4 : entry->size < slab ? 8 : 32));
        CHECK(entry->alignment == (size_class_is_single(size_class) ? 1 : entry->units));
        CHECK(is_power_of_two(entry->alignment));
        /* A fifth of the addresses of a slab at most is in no block. */
        CHECK((slab - entry->blocks * (size_t)entry->size) * 5 <= slab);
        /* Rounding up wastes less than 16 bytes or one ninth, and of what is mostly addresses less
         * than a third. */
        size_t waste = entry->size - (size_classes[size_class - 1].size + 1u);
        CHECK(waste < 16 || waste * (entry->blocks > 1 ? 9 : 3) <= entry->size);
    }
}

/* Exactly the classes that are smaller than a cache line have a twin, for the odd shards. */
static void small_classes_have_twins(void **state)
{
    (void)state;
    for (unsigned size_class = 1; size_class <= SIZE_COUNT; size_class++) {
        unsigned twin = size_class_for_shard(size_class, 5);
        CHECK(size_class_for_shard(size_class, 4) == size_class);
        CHECK((twin != size_class) == (size_classes[size_class].size < 64));
        CHECK(twin < CLASS_COUNT && size_classes[twin].size == size_classes[size_class].size);
        CHECK(size_classes[twin].blocks == size_classes[size_class].blocks);
        CHECK(size_classes[twin].reciprocal == size_classes[size_class].reciprocal);
    }
}

static void the_reciprocal_divides_every_offset_exactly(void **state)
{
    (void)state;
    for (unsigned size_class = 1; size_class < CLASS_COUNT; size_class++) {
        size_t size = size_classes[size_class].size,
               slab = size_classes[size_class].units * UNIT_SIZE;
        for (size_t offset = 0; offset < slab; offset++)
            CHECK(size_class_index(size_class, offset) == offset / size);
    }
}

/* What a pointer into a slab is: of one with a single block, to its first unit. */
static void only_starts_are_starts(void **state)
{
    (void)state;
    for (unsigned size_class = 1; size_class < CLASS_COUNT; size_class++) {
        const struct size_class *entry = &size_classes[size_class];
        uintptr_t base = (uintptr_t)entry->alignment * UNIT_SIZE * 5;
        size_t mapped = entry->blocks > 1 ? entry->units * UNIT_SIZE : UNIT_SIZE;
        for (size_t offset = 0; offset < mapped; offset += 8) {
            bool starts = offset % entry->size == 0 && offset / entry->size < entry->blocks;
            CHECK(size_class_starts_at(size_class, (void *)(base + offset)) == starts);
        }
    }
}

static void the_inverse_tells_multiples_from_all_others(void **state)
{
    (void)state;
    for (unsigned size_class = 1; size_class < CLASS_COUNT; size_class++) {
        const struct size_class *layout = &size_classes[size_class];
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
    for (unsigned size_class = 1; size_class <= SIZE_COUNT; size_class++)
        if (size_classes[size_class].size >= size &&
            size_classes[size_class].size % alignment == 0 &&
            size_classes[size_class].alignment * UNIT_SIZE >= alignment)
            return size_class;
    return CLASS_NONE;
}

static void aligned_requests_get_the_smallest_class_that_fits(void **state)
{
    (void)state;
    for (size_t alignment = 1; alignment <= LARGE_MAX; alignment *= 2)
        for (size_t size = 0; size <= LARGE_MAX; size += size < 4200 ? 1 : size < 140000 ? 37 : 999)
            CHECK(size_class_aligned(size, alignment) == naive_aligned(size, alignment));
    for (size_t alignment = 1; alignment <= UNIT_SIZE; alignment *= 2) {
        CHECK(size_class_aligned(MID_MAX, alignment) != CLASS_NONE);
        CHECK(size_class_aligned(LARGE_MAX, alignment) == SIZE_COUNT);
        CHECK(size_class_aligned(LARGE_MAX + 1, alignment) == CLASS_NONE);
        CHECK(size_class_aligned(SIZE_MAX, alignment) == CLASS_NONE);
    }
    for (size_t alignment = 2 * LARGE_MAX; alignment; alignment *= 2)
        CHECK(size_class_aligned(1, alignment) == CLASS_NONE);
    for (size_t size = 0; size <= LARGE_MAX; size += 999) {
        unsigned size_class = size_class_single(size);
        CHECK(size_class_is_single(size_class) && size_classes[size_class].size >= size);
        CHECK(size_class == SINGLE_CLASS_FIRST || size_classes[size_class - 1].size < size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_gets_the_smallest_class_that_fits),
        cmocka_unit_test(small_classes_have_twins),
        cmocka_unit_test(classes_are_what_the_header_promises),
        cmocka_unit_test(the_reciprocal_divides_every_offset_exactly),
        cmocka_unit_test(the_inverse_tells_multiples_from_all_others),
        cmocka_unit_test(only_starts_are_starts),
        cmocka_unit_test(aligned_requests_get_the_smallest_class_that_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
