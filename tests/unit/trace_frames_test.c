/* observe/frames: against what the C library's unwinder finds. */
#include "unit.h"

#include <execinfo.h>
#include <pthread.h>
#include <signal.h>

#include "trace/frames.h"
#include "trace/modules.h"

enum { FRAMES = 40 };

/* Compares from the caller's caller on: the place of this call differs, and a sanitizer may stand
 * before it. */
static __attribute__((noinline)) void compare(void)
{
    void *expected[FRAMES];
    struct frame frame;
    struct reader reader = {.find = modules_code};
    int count = backtrace(expected, FRAMES);
    modules_open();
    frame_from_here(&frame, &reader);
    CHECK(frame_up(&frame, &reader));
    int i = 1;
    while (i < 3 && expected[i] != (void *)frame.pc)
        i++;
    assert_ptr_equal((void *)frame.pc, expected[i]);
    while (++i < count) {
        CHECK(frame_up(&frame, &reader));
        assert_ptr_equal((void *)frame.pc, expected[i]);
    }
    assert_true(count >= 3);
    /* Where no table tells of the last one, the frame pointer may lead on. */
    assert_true(!frame_up(&frame, &reader) || !frame.had_table);
    modules_close();
}

static int compare_in_sort(const void *a, const void *b)
{
    compare();
    return *(const char *)a - *(const char *)b;
}

static void *compare_in_thread(void *unused)
{
    char letters[] = "cba";
    qsort(letters, 3, 1, compare_in_sort);
    return unused;
}

static void on_signal(int number)
{
    (void)number;
    compare();
}

static void calls_through_other_libraries(void **state)
{
    (void)state;
    char letters[] = "cba";
    compare();
    qsort(letters, 3, 1, compare_in_sort);
}

static void calls_in_a_thread(void **state)
{
    (void)state;
    pthread_t thread;
    pthread_create(&thread, NULL, compare_in_thread, NULL);
    pthread_join(thread, NULL);
}

static void calls_through_a_signal_handler(void **state)
{
    (void)state;
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
}

static void without_a_map_it_ends(void **state)
{
    (void)state;
    struct frame frame;
    struct reader reader = {.find = modules_code};
    frame_from_here(&frame, &reader);
    for (int i = 0; i < 100 && frame_up(&frame, &reader); i++)
        assert_true(i < 99);
}

static void what_cannot_be_read_is_known(void **state)
{
    (void)state;
    char byte = 'a', copy = 0;
    assert_true(modules_read((uintptr_t)&byte, &copy, 1));
    assert_int_equal(copy, 'a');
    assert_false(modules_read(0, &copy, 1));
    assert_false(modules_read(UINTPTR_MAX, &copy, 1));
    assert_false(modules_read((uintptr_t)1 << 63, &copy, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_through_other_libraries),  cmocka_unit_test(calls_in_a_thread),
        cmocka_unit_test(calls_through_a_signal_handler), cmocka_unit_test(without_a_map_it_ends),
        cmocka_unit_test(what_cannot_be_read_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
