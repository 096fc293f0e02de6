/* map/page_map, the class map: its window, the wide map, and what lies outside of both. The window
 * is chosen once in a process, so each case runs in a child. */
#define UNIT_FORK _Fork
#include "unit.h"

#include <sys/mman.h>

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

/* Below what neither map covers everything is allowed and nothing is remembered. */
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
    CHECK(class_map.limit == 64 * GIB / UNIT_SIZE);
    CHECK(class_map.base % REGION_SIZE == 0);
    CHECK(class_map.base <= centre - 32 * GIB && window_end() >= centre + 8 * GIB);
    use_superslab(centre);
    use_superslab(class_map.base);
    use_superslab(centre - 30 * GIB);
    use_superslab(window_end() - REGION_SIZE);
    /* A slab that sticks out of the window is remembered as far as the window goes. */
    class_map_set(pointer(window_end() - UNIT_SIZE), 4, 5);
    CHECK(class_map_get(pointer(window_end() - 1)) == 5);
    CHECK(class_map_get(pointer(window_end())) == CLASS_NONE);
    CHECK(class_map_get(NULL) == CLASS_NONE);
    CHECK(class_map_get(pointer(UINTPTR_MAX)) == CLASS_NONE);
    CHECK(class_map_newest() == &class_map);
}

/* What the heaps' hit path finds that still has the base of the window, and all else of the wide
 * map: a signal handler has changed the heap over in the middle. */
static unsigned found_by_old_base(uintptr_t address)
{
    size_t index = (address - class_map.base) >> UNIT_SHIFT;
    return index < wide_class_map.limit ? wide_class_map.classes[index] : CLASS_NONE;
}

/* A superslab outside of the window makes the wide map, which covers every address. */
static void wide_map(void *argument)
{
    uintptr_t centre = *(uintptr_t *)argument, last = ((uintptr_t)1 << 47) - REGION_SIZE;
    CHECK(class_map_init(pointer(centre)));
    CHECK(class_map_prepare(pointer(centre)));
    class_map_set(pointer(centre), 2, 7);
    uintptr_t outside[] = {
        class_map.base - REGION_SIZE, window_end(), REGION_SIZE, TIB, 16 * TIB, last};
    for (size_t i = 0; i < ARRAY_LENGTH(outside); i++) {
        if (outside[i] - class_map.base >= class_map.limit << UNIT_SHIFT) {
            use_superslab(outside[i]);
            CHECK(class_map_newest() == &wide_class_map);
            class_map_set(pointer(outside[i]), 4, 40 + (unsigned)i);
        }
    }
    for (size_t i = 0; i < ARRAY_LENGTH(outside); i++)
        CHECK(found_by_old_base(outside[i]) == CLASS_NONE);
    CHECK(found_by_old_base(centre) == CLASS_NONE && found_by_old_base(0) == CLASS_NONE);

    /* A slab from before is known in the window alone, until who has a block of it says so. */
    CHECK(class_map_get(pointer(centre)) == CLASS_NONE);
    CHECK(class_map.classes[(centre - class_map.base) >> UNIT_SHIFT] == 7);
    CHECK(class_map_prepare(pointer(centre)));
    class_map_set(pointer(centre), 2, 7);
    CHECK(class_map_get(pointer(centre)) == 7);
    /* Who is gone is gone from both. */
    class_map_set(pointer(centre), 2, CLASS_NONE);
    CHECK(class_map_get(pointer(centre)) == CLASS_NONE);
    CHECK(class_map.classes[(centre - class_map.base) >> UNIT_SHIFT] == CLASS_NONE);

    mark window = class_map_mark(class_map.classes), wide = class_map_mark(wide_class_map.classes);
    CHECK(class_map_is_mark(window) && class_map_is_mark(wide) && window != wide);
    CHECK(!class_map_is_mark(0) && !class_map_is_mark(window + 1));
    CHECK(class_map_get(NULL) == CLASS_NONE);
    CHECK(class_map_get(pointer(UINTPTR_MAX)) == CLASS_NONE);
    CHECK(class_map_get(pointer((uintptr_t)1 << 48)) == CLASS_NONE);
    CHECK(class_map_get(pointer((uintptr_t)1 << 63 | centre)) == CLASS_NONE);
    use_outside(((uintptr_t)1 << 52) - REGION_SIZE);
}

static size_t page_table_bytes(void)
{
    char status[8192] = "";
    os_read_file("/proc/self/status", status, sizeof status - 1);
    const char *figure = strstr(status, "VmPTE:");
    CHECK(figure);
    return strtoull(figure + strlen("VmPTE:"), NULL, 10) * KIB;
}

/* Where all memory is locked, too, the wide map takes none: page tables for all of it would be 4
 * MiB, and take 200 ms. */
static void wide_map_in_locked_memory(void *centre)
{
    size_t before = page_table_bytes();
    if (mlockall(MCL_FUTURE) != 0)
        return; /* the limit is low */
    wide_map(centre);
    CHECK(page_table_bytes() < before + MIB);
}

/* Everything but the first map is refused: what lies outside of the window stays unknown. */
static void wide_map_refused(void *argument)
{
    (void)argument;
    uintptr_t centre = (uintptr_t)0x7f0000000000u;
    CHECK(class_map_init(pointer(centre)));
    use_superslab(centre);
    struct rlimit set = {TIB, TIB};
    CHECK(setrlimit(RLIMIT_AS, &set) == 0);
    use_outside(class_map.base - REGION_SIZE);
    use_outside(window_end());
    use_superslab(centre);
    CHECK(class_map_newest() == &class_map && !class_map_is_mark(0));
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

static void beyond_the_window_there_is_a_wide_map(void **state)
{
    (void)state;
    uintptr_t centres[] = {(uintptr_t)0x7f0000000000u, (uintptr_t)0x2aaaaaa00000u, 60 * GIB};
    for (size_t i = 0; i < ARRAY_LENGTH(centres); i++)
        unit_in_child(wide_map, &centres[i]);
    if (!HAKMEM_SANITIZE_ADDRESS && !HAKMEM_SANITIZE_THREAD)
        unit_in_child(wide_map_in_locked_memory, &centres[0]);
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
    unit_in_child(wide_map_refused, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_window_lies_around_the_first_superslab),
        cmocka_unit_test(beyond_the_window_there_is_a_wide_map),
        cmocka_unit_test(the_window_shrinks_with_the_address_space),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
