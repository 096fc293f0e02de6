/* The heap is used at the very end of threads and of the process: destructors of thread-specific
 * keys (all four rounds), destructors of thread_local objects, atexit and at_quick_exit handlers,
 * ELF destructors of the program and of a library (behaviour 33).
 */
#include "runtime_support.h"

#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#include <hakmem/hakmem.h>

#define KEYS 40
#define ROUNDS 4
#define BURST 40
#define CYCLES 600

extern int exit_report;
void exit_report_step(char step);
void exit_work(void);

/* What C++ compilers call to register the destructor of a thread_local object. */
extern int __cxa_thread_atexit_impl(void (*destructor)(void *), void *object, void *library);
extern void *__dso_handle;

static pthread_key_t keys[KEYS];
static atomic_uint destructor_calls;

/* Works in all rounds: frees the value of the last round and sets another until the last. */
struct key_value {
    pthread_key_t key;
    unsigned round;
    void *block;
};

static void key_destructor(void *argument)
{
    struct key_value *value = argument;
    REQUIRE(pattern_holds(value->block, 100 + value->round * 1000, value->round));
    free(value->block);
    void *burst[BURST];
    for (unsigned i = 0; i < BURST; i++) {
        burst[i] = malloc(1 + value->key * 16);
        REQUIRE(burst[i] != NULL);
    }
    for (unsigned i = 0; i < BURST; i++) {
        free(burst[i]);
    }
    unsigned next_round = value->round + 1;
    pthread_key_t key = value->key;
    free(value);
    atomic_fetch_add(&destructor_calls, 1);
    if (next_round < ROUNDS) {
        struct key_value *next = malloc(sizeof *next);
        REQUIRE(next != NULL);
        next->key = key;
        next->round = next_round;
        next->block = malloc(100 + next_round * 1000);
        REQUIRE(next->block != NULL);
        pattern_fill(next->block, 100 + next_round * 1000, next_round);
        REQUIRE(pthread_setspecific(key, next) == 0);
    }
}

static void thread_local_destructor(void *object)
{
    REQUIRE(pattern_holds(object, 3000, 21));
    free(object);
    free(malloc(70000));
    atomic_fetch_add(&destructor_calls, 1);
}

/* A thread that uses the heap, then leaves work to destructors. */
static void *busy_main(void *argument)
{
    uint32_t seed = (uint32_t)(uintptr_t)argument + 1;
    for (unsigned i = 0; i < 50; i++) {
        free(malloc(random_size(&seed) % 20000));
    }
    return NULL;
}

static void *keys_main(void *argument)
{
    /* Some threads make their first allocation in a destructor's neighbourhood only. */
    if (argument != NULL) {
        busy_main(argument);
    }
    for (unsigned i = 0; i < KEYS; i++) {
        struct key_value *value = malloc(sizeof *value);
        REQUIRE(value != NULL);
        value->key = keys[i];
        value->round = 0;
        value->block = malloc(100);
        REQUIRE(value->block != NULL);
        pattern_fill(value->block, 100, 0);
        REQUIRE(pthread_setspecific(keys[i], value) == 0);
    }
    void *object = malloc(3000);
    REQUIRE(object != NULL);
    pattern_fill(object, 3000, 21);
    REQUIRE(__cxa_thread_atexit_impl(thread_local_destructor, object, &__dso_handle) == 0);
    return NULL;
}

static void run_thread(void *(*body)(void *), uintptr_t argument)
{
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, body, (void *)argument) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
}

/* behaviour 33 */
static void test_thread_destructors(void **state)
{
    (void)state;
    for (unsigned i = 0; i < KEYS; i++) {
        assert_int_equal(pthread_key_create(&keys[i], key_destructor), 0);
    }
    atomic_store(&destructor_calls, 0);
    long resident = 0;
    for (uintptr_t cycle = 0; cycle < CYCLES; cycle++) {
        run_thread(keys_main, cycle % 3);
        if (cycle == CYCLES / 10) {
            resident = resident_kib();
        }
    }
    assert_int_equal(atomic_load(&destructor_calls), CYCLES * (KEYS * ROUNDS + 1));
    /* What a thread caches again after the allocator took its leave must not be lost. */
    long growth = resident_kib() - resident;
    print_message("resident %+ld KiB\n", growth);
    assert_true(growth < 2048);
    for (unsigned i = 0; i < KEYS; i++) {
        assert_int_equal(pthread_key_delete(keys[i]), 0);
    }
}

/* One key made before the allocator can have made its own, and one made after: the C library calls
 * destructors in the order of the keys, round by round. */
static pthread_key_t early_key;
static pthread_key_t late_key;

/* What a thread of the next test is to do: use the heap for the first time in this round. */
struct first_use {
    pthread_key_t key;
    unsigned round;
    unsigned rounds_seen;
};

static void first_use_destructor(void *argument)
{
    struct first_use *use = argument;
    if (++use->rounds_seen < use->round) {
        REQUIRE(pthread_setspecific(use->key, use) == 0);
        return;
    }
    free(malloc(100));
    free(calloc(1, 5000));
    atomic_fetch_add(&destructor_calls, 1);
}

static void make_early_key(void)
{
    REQUIRE(pthread_key_create(&early_key, first_use_destructor) == 0);
}

__attribute__((section(".preinit_array"), used)) static void (*const before_constructors)(void) =
    make_early_key;

static void *first_use_main(void *argument)
{
    struct first_use *use = argument;
    REQUIRE(pthread_setspecific(use->key, use) == 0);
    return NULL;
}

static void check_first_use(pthread_key_t key, unsigned round, const char *name)
{
    long resident = 0;
    atomic_store(&destructor_calls, 0);
    for (unsigned cycle = 0; cycle < CYCLES; cycle++) {
        struct first_use use = {.key = key, .round = round};
        run_thread(first_use_main, (uintptr_t)&use);
        if (cycle == CYCLES / 10) {
            resident = resident_kib();
        }
    }
    long growth = resident_kib() - resident;
    print_message("%s key, round %u: resident %+ld KiB\n", name, round, growth);
    assert_int_equal(atomic_load(&destructor_calls), CYCLES);
    assert_true(growth < 1024);
}

/* behaviours 33 and 34: a thread whose first allocation is in a destructor leaks nothing. */
static void test_first_use_in_destructor(void **state)
{
    (void)state;
    assert_int_equal(pthread_key_create(&late_key, first_use_destructor), 0);
    for (unsigned round = 1; round <= ROUNDS; round++) {
        check_first_use(early_key, round, "early");
        check_first_use(late_key, round, "late");
    }
    assert_int_equal(pthread_key_delete(late_key), 0);
}

static void atexit_handler(void)
{
    exit_work();
    run_thread(busy_main, 3);
    exit_report_step('a');
}

/* Without a thread: the C library ends a process whose main thread left with its last thread. */
static void simple_handler(void)
{
    exit_work();
    exit_report_step('s');
}

static void quick_exit_handler(void)
{
    exit_work();
    exit_report_step('q');
}

__attribute__((destructor(101))) static void program_destructor(void)
{
    exit_work();
    exit_report_step('d');
}

static void leave_by_exit(void)
{
    REQUIRE(atexit(atexit_handler) == 0);
    exit(0);
}

static void leave_by_quick_exit(void)
{
    REQUIRE(at_quick_exit(quick_exit_handler) == 0);
    quick_exit(0);
}

static void *exiting_main(void *argument)
{
    (void)argument;
    exit_work();
    exit(0);
}

/* The process ends from another thread while others still allocate. */
static void *endless_main(void *argument)
{
    uint32_t seed = (uint32_t)(uintptr_t)argument + 1;
    for (;;) {
        free(malloc(random_size(&seed)));
    }
    return NULL;
}

static void leave_from_thread(void)
{
    pthread_t thread;
    REQUIRE(atexit(atexit_handler) == 0);
    for (uintptr_t i = 0; i < 3; i++) {
        REQUIRE(pthread_create(&thread, NULL, endless_main, (void *)i) == 0);
    }
    REQUIRE(pthread_create(&thread, NULL, exiting_main, NULL) == 0);
    endless_main((void *)9);
}

static void leave_main_thread_first(void)
{
    pthread_t thread;
    REQUIRE(atexit(simple_handler) == 0);
    exit_work();
    REQUIRE(pthread_create(&thread, NULL, keys_main, (void *)1) == 0);
    pthread_exit(NULL);
}

static void check_leaving(void (*leave)(void), const char *expected)
{
    char steps[16] = {0};
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    exit_report = ends[1];
    int status = run_guarded(leave, HANG_SECONDS);
    exit_report = -1;
    close(ends[1]);
    size_t length = 0;
    ssize_t got;
    while (length < sizeof steps - 1 && (got = read(ends[0], steps + length, 1)) > 0) {
        length++;
    }
    close(ends[0]);
    assert_int_equal(status, 0);
    assert_string_equal(steps, expected);
}

/* behaviour 33: handlers first, then the program's destructors, then the library's. */
static void test_exit(void **state)
{
    (void)state;
    check_leaving(leave_by_exit, "adl");
}

/* behaviour 33 */
static void test_quick_exit(void **state)
{
    (void)state;
    check_leaving(leave_by_quick_exit, "q");
}

/* behaviour 33 */
static void test_exit_from_thread(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 20; round++) {
        check_leaving(leave_from_thread, "adl");
    }
}

/* behaviour 33 */
static void test_main_thread_leaves_first(void **state)
{
    (void)state;
    for (unsigned i = 0; i < KEYS; i++) {
        assert_int_equal(pthread_key_create(&keys[i], key_destructor), 0);
    }
    check_leaving(leave_main_thread_first, "sdl");
}

int main(void)
{
    (void)hakmem_version();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thread_destructors),
        cmocka_unit_test(test_first_use_in_destructor),
        cmocka_unit_test(test_exit),
        cmocka_unit_test(test_quick_exit),
        cmocka_unit_test(test_exit_from_thread),
        cmocka_unit_test(test_main_thread_leaves_first),
    };
    return cmocka_run_group_tests_name("runtime_exit", tests, NULL, NULL);
}
