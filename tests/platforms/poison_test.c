/* AddressSanitizer is told of every byte that lies in no block in use (core/base/poison.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <sanitizer/asan_interface.h>

#include "api/alloc.h"

enum { MARK_BEGIN = 0, MARK_END = 8 };

static const size_t sizes[] = {1, 16, 100, 1024, 5000, 32768, 100000, 1 << 20, 4 << 20};

static bool is_open(const char *start, size_t size)
{
    return __asan_region_is_poisoned((void *)start, size) == NULL;
}

static bool is_poisoned(const char *start, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!__asan_address_is_poisoned(start + i))
            return false;
    return true;
}

static bool is_poisoned_but_for_the_mark(const char *block, size_t size)
{
    return is_poisoned(block, MARK_BEGIN) && is_poisoned(block + MARK_END, size - MARK_END);
}

static void freed_blocks_are_poisoned_and_new_ones_open(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
            char *block = alloc(sizes[i]);
            size_t usable = alloc_usable_size(block, "test");
            assert_true(is_open(block, usable));
            release(block);
            assert_true(is_poisoned_but_for_the_mark(block, usable));
        }
    }
}

static void neighbours_that_nobody_has_are_poisoned(void **state)
{
    (void)state;
    char *block = alloc(48);
    size_t size = alloc_usable_size(block, "test"); /* it may be borrowed from a larger class */
    char *slab = (char *)round_down((uintptr_t)block, UNIT_SIZE);
    size_t open = 0;
    for (size_t i = 0; i + size <= UNIT_SIZE; i += size)
        open += is_open(slab + i, size);
    assert_int_equal(open, 1);
    release(block);
}

static void what_realloc_cuts_off_is_poisoned(void **state)
{
    (void)state;
    char *block = alloc(800000);
    size_t before = alloc_usable_size(block, "test");
    assert_ptr_equal(alloc_resize(block, 200000), block);
    size_t after = alloc_usable_size(block, "test");
    assert_true(after < before);
    assert_true(is_open(block, after));
    assert_true(is_poisoned(block + after, before - after));
    assert_ptr_equal(alloc_resize(block, 800000), block);
    assert_true(is_open(block, alloc_usable_size(block, "test")));
    release(block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(freed_blocks_are_poisoned_and_new_ones_open),
        cmocka_unit_test(neighbours_that_nobody_has_are_poisoned),
        cmocka_unit_test(what_realloc_cuts_off_is_poisoned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
