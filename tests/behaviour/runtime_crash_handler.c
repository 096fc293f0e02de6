/* Misuse ends the program by SIGABRT, and programs handle that: their handlers allocate and make
 * backtraces, which load libraries. No lock may be held then (behaviour 24).
 *
 * A child makes the mistake, and its handler ends it well.
 */
#include "runtime_support.h"

#include <execinfo.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <hakmem/hakmem.h>

static const size_t sizes[] = {100, 5000, 100000, 3 << 20};
static size_t size;

static void handler(int signal_number)
{
    void *frames[20];
    (void)signal_number;
    int count = backtrace(frames, 20);
    REQUIRE(count > 0);
    char **names = backtrace_symbols(frames, count);
    REQUIRE(names != NULL);
    free(names);
    for (size_t bytes = 8; bytes < 8u << 20; bytes *= 2) {
        void *block = malloc(bytes);
        REQUIRE(block != NULL);
        free(block);
    }
    /* More than caches hold, of the size that the mistake was made with. */
    for (unsigned i = 0; i < 3000 && size < 32768; i++) {
        REQUIRE(malloc(size) != NULL);
    }
    _exit(7);
}

static void handle_abort(void)
{
    alarm(HANG_SECONDS);
    int null = open("/dev/null", O_WRONLY);
    dup2(null, STDERR_FILENO);
    signal(SIGABRT, handler);
}

static void free_twice(void)
{
    handle_abort();
    char *volatile block = malloc(size);
    block[0] = 1;
    free(block);
    free(block);
}

static void free_foreign(void)
{
    static char foreign[100];
    handle_abort();
    char *volatile pointer = foreign + 16;
    free(pointer);
}

/* Found when the thread's blocks go home: the mark was overwritten after the first free. */
static void free_twice_unnoticed(void)
{
    handle_abort();
    char *volatile block = malloc(size);
    block[0] = 1;
    free(block);
    memset(block, 3, size);
    free(block);
    hakmem_thread_flush();
    hakmem_purge();
}

static void free_inside(void)
{
    handle_abort();
    char *volatile block = malloc(size);
    memset(block, 3, size);
    free(block + 32);
    hakmem_thread_flush();
}

static void expect_handled(void (*mistake)(void))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        mistake();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
}

/* behaviour 24 */
static void test_handler_of_misuse_at_once(void **state)
{
    (void)state;
    expect_handled(free_foreign);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size = sizes[i];
        expect_handled(free_twice);
    }
}

/* behaviour 24 */
static void test_handler_of_misuse_at_a_flush(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        size = sizes[i];
        expect_handled(free_twice_unnoticed);
        expect_handled(free_inside);
    }
}

int main(void)
{
    (void)hakmem_version();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handler_of_misuse_at_once),
        cmocka_unit_test(test_handler_of_misuse_at_a_flush),
    };
    return cmocka_run_group_tests_name("runtime_crash_handler", tests, NULL, NULL);
}
