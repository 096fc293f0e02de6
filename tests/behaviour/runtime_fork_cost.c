/* fork costs what the program has used, not what there might be: with 64 shards and many heaps
 * neither process touches pages because of it (behaviour 53). Counts page faults: time is noise.
 */
#include "runtime_support.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/resource.h>

#include <cmocka.h>

#include <hakmem/hakmem.h>

#define FORKS 50
#define THREADS 200
#define FAULTS_MAX 20

static pthread_barrier_t started, ending;

static void *thread_main(void *argument)
{
    (void)argument;
    for (size_t size = 16; size < 2000; size += 64) {
        void *volatile block = malloc(size);
        free(block);
    }
    pthread_barrier_wait(&started);
    pthread_barrier_wait(&ending);
    return NULL;
}

static long faults(int who)
{
    struct rusage usage;
    REQUIRE(getrusage(who, &usage) == 0);
    return usage.ru_minflt;
}

struct cost {
    long parent, child; /* page faults a fork */
};

static struct cost measure(void)
{
    struct cost cost = {faults(RUSAGE_SELF), faults(RUSAGE_CHILDREN)};
    for (unsigned i = 0; i < FORKS; i++) {
        int status;
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            _exit(0);
        }
        REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    }
    cost.parent = (faults(RUSAGE_SELF) - cost.parent) / FORKS;
    cost.child = (faults(RUSAGE_CHILDREN) - cost.child) / FORKS;
    return cost;
}

/* behaviour 53 */
static void test_faults(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    long shards = 0;
    assert_int_equal(hakmem_option_get("shards", &shards), 0);
    assert_int_equal(shards, 64); /* from the environment */
    struct cost before = measure();
    print_message("alone: %ld in the parent, %ld in the child\n", before.parent, before.child);
    assert_true(before.parent < 3 * FAULTS_MAX && before.child < 3 * FAULTS_MAX);
    pthread_barrier_init(&started, NULL, THREADS + 1);
    pthread_barrier_init(&ending, NULL, THREADS + 1);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, thread_main, NULL), 0);
    }
    pthread_barrier_wait(&started);
    struct cost after = measure();
    print_message("%d threads: %ld, %ld\n", THREADS, after.parent, after.child);
    /* The C library's fork itself writes to the descriptor of each thread, and its page. */
    assert_true(after.parent < before.parent + THREADS + FAULTS_MAX);
    assert_true(after.child < before.child + THREADS + THREADS / 4 + FAULTS_MAX);
    pthread_barrier_wait(&ending);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests_name("runtime_fork_cost", tests, NULL, NULL);
}
