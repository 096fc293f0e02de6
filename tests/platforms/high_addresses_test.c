/* Where mappings may lie (behaviour 41): outside of the class map's window, where all has to work
 * by the slow paths, and above what the page map covers. A processor with five levels of page
 * tables has 57 bits of them, and a system gives them out to programs that ask for it. hakmem never
 * asks; if a mapping lies there all the same, it must be given back and the call fail, since the
 * map has no entry for it.
 *
 * The machine that runs this need not have such addresses: os_map and os_discard are replaced, and
 * what they hand out is never touched. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "api/alloc.h"
#include "checks/checks.h"
#include "map/page_map.h"
#include "os/os.h"

void *__real_os_map(size_t size, size_t alignment, void *hint);
void __real_os_discard(void *address, size_t size);
void *__wrap_os_map(size_t size, size_t alignment, void *hint);
void __wrap_os_discard(void *address, size_t size);

/* Where mappings of a region or more are made, 0: where the system likes. */
static uintptr_t place;
static unsigned handed_out, given_back;

/* True: mappings of a region or more are asked for where the window does not reach. */
static bool far;

void *__wrap_os_map(size_t size, size_t alignment, void *hint)
{
    static uintptr_t next = (uintptr_t)1 << 45;
    if (far && alignment >= REGION_SIZE) {
        next += round_up(size, REGION_SIZE) + REGION_SIZE;
        return __real_os_map(size, alignment, (void *)next);
    }
    if (!place || alignment < REGION_SIZE)
        return __real_os_map(size, alignment, hint);
    handed_out++;
    return (void *)place;
}

void __wrap_os_discard(void *address, size_t size)
{
    if (place && (uintptr_t)address == place)
        given_back++;
    else
        __real_os_discard(address, size);
}

static const uintptr_t high[] = {
    (uintptr_t)1 << 48,                                         /* the first that has no entry */
    ((uintptr_t)1 << 48) + 5 * REGION_SIZE, (uintptr_t)1 << 52, /* AArch64 with large addresses */
    ((uintptr_t)1 << 56) - REGION_SIZE, /* the last of the user half with five levels */
};

static void the_map_has_no_place_for_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(high); i++) {
        assert_false(page_map_prepare((void *)high[i]));
        assert_null(page_map_lookup((void *)high[i]));
        assert_null(page_map_nearest((void *)high[i]));
        assert_int_equal(class_map_get((void *)high[i]), CLASS_NONE);
    }
}

/* Small, large and big; before the first superslab, and after. */
static void expect_refusal(void)
{
    static const size_t sizes[] = {32, 20000, 500000, 8 * MIB};
    for (size_t i = 0; i < ARRAY_LENGTH(high); i++) {
        for (size_t s = 0; s < ARRAY_LENGTH(sizes); s++) {
            handed_out = given_back = 0;
            place = high[i];
            errno = 0;
            void *block = alloc(sizes[s]);
            place = 0;
            assert_null(block);
            assert_int_equal(errno, ENOMEM);
            assert_true(handed_out > 0);
            assert_int_equal(given_back, handed_out);
        }
    }
}

static void calls_fail_before_there_is_a_superslab(void **state)
{
    (void)state;
    expect_refusal();
}

static void calls_work_once_addresses_are_ordinary(void **state)
{
    (void)state;
    static const size_t sizes[] = {32, 20000, 500000, 8 * MIB};
    for (size_t s = 0; s < ARRAY_LENGTH(sizes); s++) {
        char *block = alloc(sizes[s]);
        assert_non_null(block);
        block[0] = block[sizes[s] - 1] = 'x';
        release(block);
    }
    /* The hit path of free has to know its blocks: the window lies where the blocks are. */
    char *block = alloc(32);
    assert_int_not_equal(class_map_get(block), CLASS_NONE);
    release(block);
}

/* More than what magazines, bins and the first superslab have left. */
static void calls_fail_when_the_heap_would_grow_there(void **state)
{
    (void)state;
    enum { BLOCKS = 10 };
    void *block[BLOCKS];
    unsigned made = 0;
    handed_out = given_back = 0;
    place = high[0];
    while (made < BLOCKS && (block[made] = alloc(500000)) != NULL)
        made++;
    place = 0;
    assert_true(made < BLOCKS);
    assert_true(handed_out > 0);
    assert_int_equal(given_back, handed_out);
    while (made)
        release(block[--made]);
}

static void blocks_outside_the_window_work(void **state)
{
    (void)state;
    if (HAKMEM_SANITIZE_THREAD)
        skip(); /* it has its own idea of where a program's memory is */
    enum { BLOCKS = 3000 };
    static const size_t sizes[] = {32, 20000, 500000, 8 * MIB};
    static char *block[BLOCKS];
    unsigned outside = 0;
    far = true;
    for (unsigned i = 0; i < BLOCKS; i++) {
        size_t size = sizes[i % 100 ? i % 3 : 3];
        block[i] = alloc(size);
        assert_non_null(block[i]);
        outside += (uintptr_t)block[i] - class_map.base >= class_map.limit * UNIT_SIZE;
        block[i][0] = block[i][size - 1] = (char)i;
    }
    assert_true(outside > BLOCKS / 2);
    for (unsigned i = 0; i < BLOCKS; i++) {
        assert_int_equal(block[i][0], (char)i);
        block[i] = alloc_resize(block[i], 40000);
        release(block[i]);
    }
    heap_check(heap_of_thread());
    far = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_map_has_no_place_for_them),
        cmocka_unit_test(calls_fail_before_there_is_a_superslab),
        cmocka_unit_test(calls_work_once_addresses_are_ordinary),
        cmocka_unit_test(calls_fail_when_the_heap_would_grow_there),
        cmocka_unit_test(blocks_outside_the_window_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
