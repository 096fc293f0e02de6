/* fork from a signal handler that interrupted malloc or free, while other threads allocate
 * (behaviour 31). Half of the children end in the handler; the others return from it into the
 * interrupted call, which must complete, and then use the heap.
 *
 * usage: runtime_fork_signal [_Fork]
 */
#include "runtime_support.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/time.h>

#include <cmocka.h>

#include <hakmem/hakmem.h>

#define FORKS 1500
#define SLOTS 300
#define MAX_RUNNING 4

static void *slots[SLOTS];
static size_t sizes[SLOTS];
static uint32_t main_seed = 5;
static atomic_bool stopping;
static volatile sig_atomic_t in_allocator;
static volatile sig_atomic_t is_child;
static volatile sig_atomic_t running;
static volatile sig_atomic_t forked;
static volatile sig_atomic_t interrupted;

static void arm(unsigned microseconds)
{
    const struct itimerval once = {.it_value = {.tv_usec = (suseconds_t)microseconds}};
    setitimer(ITIMER_REAL, &once, NULL);
}

static pid_t (*make_child)(void) = fork;

static void fork_in_handler(int signal_number)
{
    (void)signal_number;
    int saved_errno = errno;
    if (is_child) {
        return;
    }
    if (running < MAX_RUNNING) {
        pid_t child = make_child();
        if (child == 0) {
            if (forked % 2 == 0) {
                _exit(0);
            }
            is_child = 1;
            errno = saved_errno;
            return;
        }
        REQUIRE(child > 0);
        running++;
        forked++;
        interrupted += in_allocator;
    }
    arm(60 + (unsigned)forked % 97);
    errno = saved_errno;
}

static void replace_slot(unsigned at)
{
    if (slots[at] != NULL) {
        REQUIRE(pattern_holds(slots[at], sizes[at], at));
    }
    size_t size = random_size(&main_seed);
    in_allocator = 1;
    free(slots[at]);
    slots[at] = malloc(size);
    in_allocator = 0;
    REQUIRE(slots[at] != NULL);
    sizes[at] = size;
    pattern_fill(slots[at], size, at);
}

/* Runs of one size make the caches overflow and underflow: shared structures are changed often. */
static void allocate_run(void)
{
    enum { RUN = 400 };
    static void *run[RUN];
    size_t size = 1 + random_next(&main_seed) % 1500;
    in_allocator = 1;
    for (unsigned i = 0; i < RUN; i++) {
        run[i] = malloc(size);
    }
    for (unsigned i = 0; i < RUN; i++) {
        free(run[i]);
    }
    in_allocator = 0;
}

static void end_child(void)
{
    for (unsigned round = 0; round < 200; round++) {
        replace_slot(random_next(&main_seed) % SLOTS);
    }
    allocate_run();
    for (unsigned at = 0; at < SLOTS; at++) {
        free(slots[at]);
    }
    _exit(0);
}

static void reap(int options)
{
    int status;
    while (running > 0) {
        pid_t ended = waitpid(-1, &status, options);
        if (is_child) {
            return; /* forked in here: the children are its parent's */
        }
        if (ended < 0 && errno == EINTR) {
            continue;
        }
        if (ended == 0) {
            return;
        }
        REQUIRE(ended > 0);
        REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        /* The handler changes the count as well. */
        sigset_t alarm_only, before;
        sigemptyset(&alarm_only);
        sigaddset(&alarm_only, SIGALRM);
        sigprocmask(SIG_BLOCK, &alarm_only, &before);
        running--;
        sigprocmask(SIG_SETMASK, &before, NULL);
        guard_step();
    }
}

static void *other_thread_main(void *argument)
{
    uint32_t seed = (uint32_t)(uintptr_t)argument + 1;
    void *kept[64] = {NULL};
    while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
        unsigned at = random_next(&seed) % 64;
        free(kept[at]);
        kept[at] = malloc(random_size(&seed) % 50000);
    }
    for (unsigned at = 0; at < 64; at++) {
        free(kept[at]);
    }
    return NULL;
}

static void fork_from_handlers(void)
{
    pthread_t others[2];
    sigset_t alarm_only;
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarm_only, NULL);
    for (uintptr_t i = 0; i < 2; i++) {
        REQUIRE(pthread_create(&others[i], NULL, other_thread_main, (void *)i) == 0);
    }
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = fork_in_handler;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    sigprocmask(SIG_UNBLOCK, &alarm_only, NULL);
    arm(100);
    while (forked < FORKS) {
        for (unsigned i = 0; i < 50; i++) {
            replace_slot(random_next(&main_seed) % SLOTS);
        }
        allocate_run();
        if (is_child) {
            end_child();
        }
        reap(WNOHANG);
    }
    arm(0);
    if (is_child) {
        end_child();
    }
    reap(0);
    atomic_store(&stopping, true);
    for (unsigned i = 0; i < 2; i++) {
        REQUIRE(pthread_join(others[i], NULL) == 0);
    }
    /* The test is about forks inside the allocator: most should have been. */
    REQUIRE(interrupted > FORKS / 10);
}

/* behaviour 31 */
static void test_fork_from_handler(void **state)
{
    (void)state;
    assert_int_equal(run_guarded(fork_from_handlers, HANG_SECONDS), 0);
}

int main(int argc, char **argv)
{
    (void)hakmem_version();
    if (argc > 1 && strcmp(argv[1], "_Fork") == 0) {
        make_child = _Fork;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fork_from_handler),
    };
    return cmocka_run_group_tests_name("runtime_fork_signal", tests, NULL, NULL);
}
