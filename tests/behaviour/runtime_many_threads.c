/* Many threads alive at once: each has a heap, and a new one costs as much as the first ones did
 * (behaviour 47).
 *
 * usage: runtime_many_threads [THREADS]
 */
#include "runtime_support.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#include <hakmem/hakmem.h>

#define NEW_THREADS 1000
#define RATIO_MAX 5

static unsigned thread_count = 20000;
static atomic_uint running;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_attr_t small_stack;

static void *stay(void *argument)
{
    (void)argument;
    char *block = malloc(40);
    REQUIRE(block != NULL);
    block[0] = 1;
    atomic_fetch_add(&running, 1);
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    free(block);
    return NULL;
}

static void *come_and_go(void *argument)
{
    (void)argument;
    char *block = malloc(40);
    REQUIRE(block != NULL);
    block[0] = 1;
    free(block);
    return NULL;
}

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* To wake an idle CPU costs ten times as much as the rest: new threads stay on this one. */
static void stay_on_this_cpu(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
}

/* CPU time of a thread that comes and goes, the least of some tries: others use the machine too. */
static double cost_of_thread(void)
{
    double least = 1;
    for (unsigned i = 0; i < 5; i++) {
        double before = cpu_seconds();
        for (unsigned k = 0; k < NEW_THREADS / 5; k++) {
            pthread_t thread;
            REQUIRE(pthread_create(&thread, &small_stack, come_and_go, NULL) == 0);
            REQUIRE(pthread_join(thread, NULL) == 0);
        }
        double cost = (cpu_seconds() - before) / (NEW_THREADS / 5);
        least = cost < least ? cost : least;
    }
    return least;
}

/* behaviour 47 */
static void test_many_threads(void **state)
{
    (void)state;
    pthread_t *threads = calloc(thread_count, sizeof *threads);
    assert_non_null(threads);
    pthread_attr_init(&small_stack);
    pthread_attr_setstacksize(&small_stack, 32768);
    stay_on_this_cpu();
    double alone = cost_of_thread();
    pthread_mutex_lock(&gate);
    double before = cpu_seconds();
    unsigned count = 0;
    while (count < thread_count && pthread_create(&threads[count], &small_stack, stay, NULL) == 0) {
        count++;
    }
    while (atomic_load(&running) < count) {
        guard_nap();
    }
    double each = (cpu_seconds() - before) / (count ? count : 1);
    double among = cost_of_thread();
    pthread_mutex_unlock(&gate);
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    double after = cost_of_thread();
    print_message(
        "%u threads: %.1f us each; a new one %.1f us before, %.1f among them, %.1f after\n", count,
        each * 1e6, alone * 1e6, among * 1e6, after * 1e6);
    free(threads);
    /* A system may allow fewer. */
    assert_true(count > 1000);
    assert_true(among < RATIO_MAX * alone && after < RATIO_MAX * alone);
    assert_true(each < 4 * RATIO_MAX * alone);
}

int main(int argc, char **argv)
{
    (void)hakmem_version();
    if (argc > 1) {
        thread_count = (unsigned)strtoul(argv[1], NULL, 10);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_threads),
    };
    return cmocka_run_group_tests_name("runtime_many_threads", tests, NULL, NULL);
}
