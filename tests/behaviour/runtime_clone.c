/* Children made by bare clone, clone3 and _Fork, for which no handler runs: they allocate, start
 * and end threads, and have children; no block is handed out twice (behaviour 45).
 */
#include "runtime_support.h"

#include <dlfcn.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include <hakmem/hakmem.h>

#define SLOTS 64
#define CHURNS 40000
#define SIZE 40

static atomic_bool stopping;

/* Each block says whose it is, in two places. */
static void churn(unsigned long id, unsigned churns)
{
    unsigned long *slots[SLOTS] = {NULL};
    uint32_t seed = (uint32_t)id;
    for (unsigned i = 0; i < churns; i++) {
        unsigned at = random_next(&seed) % SLOTS;
        if (slots[at] != NULL) {
            REQUIRE(slots[at][0] == id && slots[at][4] == id * 1000 + at);
            free(slots[at]);
        }
        slots[at] = malloc(i % 16 ? SIZE : 20000);
        REQUIRE(slots[at] != NULL);
        slots[at][0] = id;
        slots[at][4] = id * 1000 + at;
    }
    for (unsigned at = 0; at < SLOTS; at++) {
        if (slots[at] != NULL) {
            REQUIRE(slots[at][0] == id && slots[at][4] == id * 1000 + at);
        }
        free(slots[at]);
    }
}

static pthread_barrier_t barrier;

static void *thread_main(void *argument)
{
    free(malloc(SIZE));
    pthread_barrier_wait(&barrier);
    churn((unsigned long)argument, CHURNS);
    return NULL;
}

/* Threads work while the one that made the child does, and others come after they have ended. */
static void use_threads(void)
{
    enum { THREADS = 3, ROUNDS = 3 };
    for (unsigned round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        REQUIRE(pthread_barrier_init(&barrier, NULL, THREADS + 1) == 0);
        for (unsigned long i = 0; i < THREADS; i++) {
            REQUIRE(pthread_create(&threads[i], NULL, thread_main, (void *)(i + 7)) == 0);
        }
        pthread_barrier_wait(&barrier);
        churn(5, CHURNS);
        for (unsigned i = 0; i < THREADS; i++) {
            REQUIRE(pthread_join(threads[i], NULL) == 0);
        }
    }
}

static pid_t by_clone(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static pid_t by_clone3(void)
{
    struct clone_args arguments = {.exit_signal = SIGCHLD};
    return (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
}

static pid_t (*make_child)(void);

/* In its own pid namespace the child is process and thread 1; its children are made in there. */
static pid_t by_clone_in_namespace(void)
{
    make_child = by_clone;
    return (pid_t)syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
}

/* glibc from 2.34 on. */
static pid_t by_Fork(void)
{
    pid_t (*bare_fork)(void);
    *(void **)&bare_fork = dlsym(RTLD_DEFAULT, "_Fork");
    return bare_fork ? bare_fork() : by_clone();
}

static void wait_for(pid_t child)
{
    int status;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* The child has a child, and that one has one. */
static _Noreturn void child_main(bool with_threads)
{
    enum { GENERATIONS = 3 };
    for (unsigned generation = 1;; generation++) {
        churn(4, 2000);
        if (with_threads) {
            use_threads();
        }
        pid_t child = generation < GENERATIONS ? make_child() : 1;
        REQUIRE(child >= 0);
        if (child == 0) {
            continue;
        }
        if (generation < GENERATIONS) {
            wait_for(child);
        }
        churn(3, 2000);
        _exit(0);
    }
}

static void have_children(unsigned count, bool with_threads)
{
    pid_t (*make)(void) = make_child;
    for (unsigned i = 0; i < count; i++) {
        pid_t child = make();
        if (child < 0 && make != by_clone) {
            return; /* the system does not know how, or does not let us */
        }
        REQUIRE(child >= 0);
        if (child == 0) {
            child_main(with_threads);
        }
        wait_for(child);
        guard_step();
    }
}

static void alone(void)
{
    churn(1, 2000);
    have_children(2, true);
    churn(2, 2000);
}

/* Before the thread that has the children has called malloc. */
static void at_once(void)
{
    have_children(1, true);
}

static void *allocating_main(void *argument)
{
    while (!atomic_load(&stopping)) {
        churn((unsigned long)argument, 500);
    }
    return NULL;
}

static void beside_others(void)
{
    pthread_t threads[3];
    for (unsigned long i = 0; i < 3; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, allocating_main, (void *)(i + 20)) == 0);
    }
    have_children(60, false);
    have_children(3, true);
    atomic_store(&stopping, true);
    for (unsigned i = 0; i < 3; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
}

static void try_all(pid_t (*make)(void))
{
    make_child = make;
    assert_int_equal(run_guarded(at_once, HANG_SECONDS), 0);
    assert_int_equal(run_guarded(alone, HANG_SECONDS), 0);
    assert_int_equal(run_guarded(beside_others, HANG_SECONDS), 0);
}

static void test_bare_clone(void **state)
{
    (void)state;
    try_all(by_clone);
}

static void test_bare_clone3(void **state)
{
    (void)state;
    try_all(by_clone3);
}

static void test_bare_fork(void **state)
{
    (void)state;
    try_all(by_Fork);
}

static void test_pid_namespace(void **state)
{
    (void)state;
    try_all(by_clone_in_namespace);
}

int main(void)
{
    (void)hakmem_version();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bare_clone),
        cmocka_unit_test(test_bare_clone3),
        cmocka_unit_test(test_bare_fork),
        cmocka_unit_test(test_pid_namespace),
    };
    return cmocka_run_group_tests_name("runtime_clone", tests, NULL, NULL);
}
