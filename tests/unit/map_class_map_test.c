/* map/page_map, the class map: its window, and what lies outside. The window is chosen once in a
 * process, so each case runs in a child. */
#define UNIT_FORK _Fork
#include "unit.h"

#include "map/page_map.h"
#include "os/os.h"

static void *pointer(uintptr_t address)
{
    return (void *)address;
}

static uintptr_t window_end(void)
{
    return class_map.base + class_map.limit * UNIT_SIZE;
}

/* Sets and reads classes of slabs of 1, 2 and 4 units at the start and the end of a superslab. */
static void use_superslab(uintptr_t base)
{
    static const unsigned first_units[] = {0, 1, 14, 28};
    CHECK(class_map_prepare(pointer(base)));
    for (size_t i = 0; i < ARRAY_LENGTH(first_units); i++) {
        for (unsigned units = 1; units <= 4; units *= 2) {
            uintptr_t slab = base + first_units[i] * UNIT_SIZE;
            class_map_set(pointer(slab), units, 10 + units);
            for (unsigned u = 0; u < units; u++) {
                CHECK(class_map_get(pointer(slab + u * UNIT_SIZE)) == 10 + units);
                CHECK(class_map_get(pointer(slab + (u + 1) * UNIT_SIZE - 1)) == 10 + units);
            }
            CHECK(class_map_get(pointer(slab + units * UNIT_SIZE)) == CLASS_NONE);
            CHECK(class_map_get(pointer(slab - 1)) == CLASS_NONE);
            class_map_set(pointer(slab), units, CLASS_NONE);
            CHECK(class_map_get(pointer(slab)) == CLASS_NONE);
        }
    }
}

/* Outside the window everything is allowed and nothing is remembered. */
static void use_outside(uintptr_t base)
{
    CHECK(class_map_prepare(pointer(base)));
    class_map_set(pointer(base), 4, 9);
    CHECK(class_map_get(pointer(base)) == CLASS_NONE);
    class_map_set(pointer(base), 4, CLASS_NONE);
}

static void normal_window(void *argument)
{
    (void)argument;
    uintptr_t centre = (uintptr_t)0x7f0000000000u;
    CHECK(class_map.limit == 0);
    CHECK(class_map_get(pointer(centre)) == CLASS_NONE);
    CHECK(class_map_init(pointer(centre + 12345)));
    CHECK(class_map.limit == TIB / UNIT_SIZE);
    CHECK(class_map.base % REGION_SIZE == 0);
    CHECK(class_map.base <= centre - TIB / 2 && window_end() >= centre + TIB / 8);
    use_superslab(centre);
    use_superslab(class_map.base);
    use_superslab(centre - 100 * GIB);
    use_superslab(window_end() - REGION_SIZE);
    use_outside(class_map.base - REGION_SIZE);
    use_outside(window_end());
    use_outside(REGION_SIZE);
    use_outside(((uintptr_t)1 << 48) - REGION_SIZE);
    /* A slab that sticks out of the window is remembered as far as the window goes. */
    class_map_set(pointer(window_end() - UNIT_SIZE), 4, 5);
    CHECK(class_map_get(pointer(window_end() - 1)) == 5);
    CHECK(class_map_get(pointer(window_end())) == CLASS_NONE);
    CHECK(class_map_get(NULL) == CLASS_NONE);
    CHECK(class_map_get(pointer(UINTPTR_MAX)) == CLASS_NONE);
}

static void window_low_in_memory(void *argument)
{
    (void)argument;
    uintptr_t centre = 6 * REGION_SIZE;
    CHECK(class_map_init(pointer(centre)));
    CHECK(class_map.base > 0 && class_map.base <= centre);
    CHECK(class_map_get(NULL) == CLASS_NONE);
    use_superslab(centre);
    use_superslab(class_map.base + 10 * GIB);
}

/* behaviour 37: little address space, a small window. */
static void window_under_a_limit(void *argument)
{
    size_t limit = *(size_t *)argument;
    struct rlimit set = {limit, limit};
    uintptr_t centre = (uintptr_t)0x7f0000000000u;
    CHECK(setrlimit(RLIMIT_AS, &set) == 0);
    CHECK(class_map_init(pointer(centre)));
    CHECK(class_map.limit <= limit / 256);
    CHECK(class_map.limit * UNIT_SIZE >= limit);
    use_superslab(centre);
    use_superslab(window_end() - REGION_SIZE);
    use_outside(window_end());
}

static void no_memory_for_the_map(void *argument)
{
    (void)argument;
    struct rlimit none = {4096, 4096};
    CHECK(setrlimit(RLIMIT_AS, &none) == 0);
    CHECK(!class_map_init(pointer((uintptr_t)0x7f0000000000u)));
    CHECK(class_map_get(pointer((uintptr_t)0x7f0000000000u)) == CLASS_NONE);
}

static void the_window_lies_around_the_first_superslab(void **state)
{
    (void)state;
    unit_in_child(normal_window, NULL);
    unit_in_child(window_low_in_memory, NULL);
}

static void the_window_shrinks_with_the_address_space(void **state)
{
    (void)state;
    /* These sanitizers take terabytes of addresses for themselves. */
    if (HAKMEM_SANITIZE_ADDRESS || HAKMEM_SANITIZE_THREAD)
        skip();
    size_t limits[] = {256 * MIB, GIB, 8 * GIB};
    for (size_t i = 0; i < ARRAY_LENGTH(limits); i++)
        unit_in_child(window_under_a_limit, &limits[i]);
    unit_in_child(no_memory_for_the_map, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_window_lies_around_the_first_superslab),
        cmocka_unit_test(the_window_shrinks_with_the_address_space),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
