/* Children that share memory with their parent: vfork, posix_spawn and clone(CLONE_VM) leave the
 * parent's heap intact, also when the child allocates or is killed (behaviour 32).
 */
#include "runtime_support.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#include <hakmem/hakmem.h>

#define SLOTS 400
#define ROUNDS 200
#define THREADS 3
#define STACK_BYTES (256 * 1024)

extern char **environ;

static void *slots[SLOTS];
static size_t sizes[SLOTS];
static uint32_t main_seed = 3;
static atomic_bool stopping;

static void churn(unsigned rounds)
{
    for (unsigned round = 0; round < rounds; round++) {
        unsigned at = random_next(&main_seed) % SLOTS;
        if (slots[at] != NULL) {
            REQUIRE(pattern_holds(slots[at], sizes[at], at));
            free(slots[at]);
        }
        sizes[at] = random_size(&main_seed);
        slots[at] = malloc(sizes[at]);
        REQUIRE(slots[at] != NULL);
        pattern_fill(slots[at], sizes[at], at);
    }
}

static void *allocating_main(void *argument)
{
    uint32_t seed = (uint32_t)(uintptr_t)argument + 1;
    void *kept[50] = {NULL};
    while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
        unsigned at = random_next(&seed) % 50;
        free(kept[at]);
        kept[at] = malloc(random_size(&seed) % 40000);
        REQUIRE(kept[at] != NULL);
    }
    for (unsigned at = 0; at < 50; at++) {
        free(kept[at]);
    }
    return NULL;
}

static void check_status(int status, int expected)
{
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == expected);
}

static void vfork_many(void)
{
    /* Volatile because the child returns from vfork on the same stack before the parent does. */
    for (volatile unsigned round = 0; round < ROUNDS; round++) {
        churn(100);
        pid_t child = vfork();
        REQUIRE(child >= 0);
        if (child == 0) {
            /* On the parent's stack and with its thread record, while it waits. */
            churn(100);
            if (round % 4 == 0) {
                execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
                _exit(1);
            }
            _exit(7);
        }
        int status;
        REQUIRE(waitpid(child, &status, 0) == child);
        check_status(status, 7);
        churn(100);
        guard_step();
    }
}

static void spawn_many(void)
{
    char *const arguments[] = {"sh", "-c", "exit 3", NULL};
    for (unsigned round = 0; round < ROUNDS; round++) {
        pid_t child;
        churn(100);
        REQUIRE(posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) == 0);
        churn(100);
        int status;
        REQUIRE(waitpid(child, &status, 0) == child);
        check_status(status, 3);
        guard_step();
    }
}

static int clone_child_waited_for(void *argument)
{
    (void)argument;
    churn(100);
    _exit(9);
}

/* Runs beside its parent with the same thread pointer, so it must not allocate; its end must
 * not be taken for the end of the process or of the thread. */
static int clone_child_beside(void *argument)
{
    volatile unsigned *counter = argument;
    while (++*counter < 200000) {
    }
    return 9;
}

static int clone_child_to_kill(void *argument)
{
    (void)argument;
    for (;;) {
        usleep(1000);
    }
    return 1;
}

static void clone_many(void)
{
    char *stack = malloc(STACK_BYTES);
    REQUIRE(stack != NULL);
    for (unsigned round = 0; round < ROUNDS; round++) {
        volatile unsigned counter = 0;
        int status;
        churn(100);
        pid_t child = clone(
            clone_child_waited_for, stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
        REQUIRE(child > 0);
        REQUIRE(waitpid(child, &status, 0) == child);
        check_status(status, 9);
        churn(100);

        void *shared_counter = (void *)(uintptr_t)&counter;
        child = clone(clone_child_beside, stack + STACK_BYTES, CLONE_VM | SIGCHLD, shared_counter);
        REQUIRE(child > 0);
        churn(100);
        REQUIRE(waitpid(child, &status, 0) == child);
        check_status(status, 9);
        REQUIRE(counter == 200000);

        child = clone(clone_child_to_kill, stack + STACK_BYTES, CLONE_VM | SIGCHLD, NULL);
        REQUIRE(child > 0);
        churn(100);
        REQUIRE(kill(child, SIGKILL) == 0);
        REQUIRE(waitpid(child, &status, 0) == child);
        REQUIRE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        churn(100);
        guard_step();
    }
    free(stack);
}

static void with_threads(void (*body)(void))
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, allocating_main, (void *)i) == 0);
    }
    body();
    atomic_store(&stopping, true);
    for (unsigned i = 0; i < THREADS; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    for (unsigned at = 0; at < SLOTS; at++) {
        REQUIRE(slots[at] == NULL || pattern_holds(slots[at], sizes[at], at));
        free(slots[at]);
        slots[at] = NULL;
    }
    churn(2000);
}

static void vfork_with_threads(void)
{
    with_threads(vfork_many);
}

static void spawn_with_threads(void)
{
    with_threads(spawn_many);
}

static void clone_with_threads(void)
{
    with_threads(clone_many);
}

/* Blocks that nobody else may have, in a thread of the caller's own. */
static void use_blocks(unsigned tag, unsigned rounds)
{
    enum { BLOCKS = 50 };
    uint32_t seed = tag + 1;
    void *kept[BLOCKS] = {NULL};
    size_t bytes[BLOCKS];
    for (unsigned round = 0; round < rounds; round++) {
        unsigned at = random_next(&seed) % BLOCKS;
        REQUIRE(!kept[at] || pattern_holds(kept[at], bytes[at], tag));
        free(kept[at]);
        bytes[at] = random_size(&seed) % 1000 + 1;
        kept[at] = malloc(bytes[at]);
        REQUIRE(kept[at] != NULL);
        pattern_fill(kept[at], bytes[at], tag);
    }
    for (unsigned at = 0; at < BLOCKS; at++)
        free(kept[at]);
}

static atomic_bool begun;

/* The thread's first call of all is the child's. */
static void *begin_in_a_child(void *argument)
{
    pid_t child = vfork();
    REQUIRE(child >= 0);
    if (child == 0) {
        free(malloc(100));
        _exit(7);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child);
    check_status(status, 7);
    atomic_store(&begun, true);
    use_blocks(0, 2000000);
    return argument;
}

static void *use_a_few_blocks(void *tag)
{
    use_blocks((unsigned)(uintptr_t)tag, 2000);
    return NULL;
}

/* Others, which look for heaps that were left behind, do not take the heap of that thread. */
static void vfork_first(void)
{
    pthread_t first, others[THREADS];
    REQUIRE(pthread_create(&first, NULL, begin_in_a_child, NULL) == 0);
    while (!atomic_load(&begun))
        usleep(100);
    for (uintptr_t tag = 1; tag < 100; tag++) {
        pthread_t *other = &others[tag % THREADS];
        if (tag > THREADS)
            REQUIRE(pthread_join(*other, NULL) == 0);
        REQUIRE(pthread_create(other, NULL, use_a_few_blocks, (void *)tag) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        REQUIRE(pthread_join(others[i], NULL) == 0);
    REQUIRE(pthread_join(first, NULL) == 0);
}

/* behaviour 32 */
static void test_vfork_first(void **state)
{
    (void)state;
    assert_int_equal(run_guarded(vfork_first, HANG_SECONDS), 0);
}

/* behaviour 32 */
static void test_vfork(void **state)
{
    (void)state;
    assert_int_equal(run_guarded(vfork_with_threads, HANG_SECONDS), 0);
}

/* behaviour 32 */
static void test_posix_spawn(void **state)
{
    (void)state;
    assert_int_equal(run_guarded(spawn_with_threads, HANG_SECONDS), 0);
}

/* behaviour 32 */
static void test_clone_vm(void **state)
{
    (void)state;
    assert_int_equal(run_guarded(clone_with_threads, HANG_SECONDS), 0);
}

int main(void)
{
    (void)hakmem_version();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vfork_first),
        cmocka_unit_test(test_vfork),
        cmocka_unit_test(test_posix_spawn),
        cmocka_unit_test(test_clone_vm),
    };
    return cmocka_run_group_tests_name("runtime_spawn", tests, NULL, NULL);
}
