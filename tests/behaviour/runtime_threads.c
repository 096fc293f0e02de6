/* Threads that come and go by the hundred thousand leave nothing behind, whether they never
 * allocate, allocate and free, leave their blocks to others or only free (behaviour 34).
 *
 * usage: runtime_threads [CYCLES]: threads created in total, over all tests
 */
#include "runtime_support.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <hakmem/hakmem.h>

#define AT_A_TIME 8
#define BLOCKS 40
#define RESIDENT_LIMIT_KIB 6144
#define MAPPED_LIMIT_KIB (32 * 1024)

static unsigned cycles = 20000;

/* What one thread is given: a place for its blocks, owned by the starting thread while the
 * other does not run. */
struct task {
    pthread_t thread;
    uint32_t seed;
    void *blocks[BLOCKS];
};

static struct task tasks[AT_A_TIME];

static void fill_task(struct task *task)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        size_t size = random_size(&task->seed) % 10000;
        task->blocks[i] = malloc(size);
        REQUIRE(task->blocks[i] != NULL);
        pattern_fill(task->blocks[i], size < 16 ? size : 16, i);
    }
}

static void empty_task(struct task *task)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        free(task->blocks[i]);
        task->blocks[i] = NULL;
    }
}

static void *silent_main(void *argument)
{
    return argument;
}

static void *allocating_main(void *argument)
{
    fill_task(argument);
    empty_task(argument);
    return NULL;
}

static void *leaving_main(void *argument)
{
    fill_task(argument);
    return NULL;
}

static void *freeing_main(void *argument)
{
    empty_task(argument);
    return NULL;
}

/* One batch of threads; `before` and `after` run in the starting thread. */
static void run_batch(
    void *(*body)(void *), void (*before)(struct task *), void (*after)(struct task *))
{
    for (unsigned i = 0; i < AT_A_TIME; i++) {
        tasks[i].seed = tasks[i].seed * 747796405u + 2891336453u + i;
        tasks[i].seed |= 1;
        if (before != NULL) {
            before(&tasks[i]);
        }
        REQUIRE(pthread_create(&tasks[i].thread, NULL, body, &tasks[i]) == 0);
    }
    for (unsigned i = 0; i < AT_A_TIME; i++) {
        REQUIRE(pthread_join(tasks[i].thread, NULL) == 0);
        if (after != NULL) {
            after(&tasks[i]);
        }
    }
}

static void check_flat(
    unsigned count, void *(*body)(void *), void (*before)(struct task *),
    void (*after)(struct task *))
{
    unsigned batches = count / AT_A_TIME;
    long resident = 0;
    long mapped = 0;
    for (unsigned batch = 0; batch < batches; batch++) {
        watchdog(HANG_SECONDS, "thread create and exit");
        run_batch(body, before, after);
        if (batch == batches / 10) {
            resident = resident_kib();
            mapped = mapped_kib();
        }
    }
    watchdog(0, "");
    long resident_growth = resident_kib() - resident;
    long mapped_growth = mapped_kib() - mapped;
    print_message(
        "%u threads: resident %+ld KiB, mapped %+ld KiB\n", count, resident_growth, mapped_growth);
    assert_true(resident_growth < RESIDENT_LIMIT_KIB);
    assert_true(mapped_growth < MAPPED_LIMIT_KIB);
}

/* behaviour 34 */
static void test_threads_that_never_allocate(void **state)
{
    (void)state;
    check_flat(cycles / 4, silent_main, NULL, NULL);
}

/* behaviour 34 */
static void test_threads_that_allocate(void **state)
{
    (void)state;
    check_flat(cycles / 4, allocating_main, NULL, NULL);
}

/* behaviours 34 and 35 */
static void test_threads_that_leave_blocks(void **state)
{
    (void)state;
    check_flat(cycles / 4, leaving_main, NULL, empty_task);
}

/* behaviours 34 and 35 */
static void test_threads_that_only_free(void **state)
{
    (void)state;
    check_flat(cycles / 4, freeing_main, fill_task, NULL);
}

int main(int argc, char **argv)
{
    (void)hakmem_version();
    if (argc > 1) {
        cycles = (unsigned)strtoul(argv[1], NULL, 10);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_that_never_allocate),
        cmocka_unit_test(test_threads_that_allocate),
        cmocka_unit_test(test_threads_that_leave_blocks),
        cmocka_unit_test(test_threads_that_only_free),
    };
    return cmocka_run_group_tests_name("runtime_threads", tests, NULL, NULL);
}
