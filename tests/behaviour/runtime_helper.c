/* The helper, a thread of the library's own that gives memory back while the program sleeps (option
 * `background`; behaviours 26 to 31, 51 and 52). */
#include "runtime_support.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include <hakmem/hakmem.h>

enum { MIB = 1 << 20, PEAK = 64 * MIB, BLOCK = 700, BLOCKS = PEAK / BLOCK, THREADS = 4 };

static void nap_ms(long milliseconds)
{
    const struct timespec nap = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&nap, NULL);
}

static int thread_count(void)
{
    struct stat tasks;
    REQUIRE(stat("/proc/self/task", &tasks) == 0);
    return (int)tasks.st_nlink - 2;
}

/* Waits until there are so many threads, for at most ten seconds. */
static bool become_threads(int count)
{
    for (int i = 0; i < 1000 && thread_count() != count; i++)
        nap_ms(10);
    return thread_count() == count;
}

/* So much is freed that the helper has work. */
static void *free_a_peak(void *survivors)
{
    static void *blocks[THREADS][BLOCKS / THREADS];
    static int next;
    void **mine = blocks[__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % THREADS];
    for (int i = 0; i < BLOCKS / THREADS; i++) {
        REQUIRE((mine[i] = malloc(BLOCK)) != NULL);
        memset(mine[i], 1, BLOCK);
    }
    for (int i = 0; i < BLOCKS / THREADS; i++)
        if (!survivors || i % 100)
            free(mine[i]);
    return NULL;
}

static void start_helper(void)
{
    free_a_peak(NULL);
    REQUIRE(thread_count() > 1);
}

static bool becomes_small(long before)
{
    long most = PEAK / 1024 / 4 + hardened_kib(THREADS * HARDENED_THREAD_KIB);
    for (int i = 0; i < 2000 && resident_kib() - before >= most; i++)
        nap_ms(10);
    return resident_kib() - before < most;
}

/* Threads free a peak, and then all sleep: no call comes any more. */
static void *free_and_sleep(void *gate)
{
    free_a_peak(gate);
    pthread_barrier_wait(gate);
    pthread_barrier_wait(gate); /* sleeps until all has been looked at */
    return NULL;
}

static void sleep_after_a_peak(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_t gate;
    pthread_barrier_init(&gate, NULL, THREADS + 1);
    long before = resident_kib();
    for (int i = 0; i < THREADS; i++)
        REQUIRE(pthread_create(&threads[i], NULL, free_and_sleep, &gate) == 0);
    pthread_barrier_wait(&gate);
    REQUIRE(becomes_small(before));
    REQUIRE(become_threads(THREADS + 1));
    pthread_barrier_wait(&gate);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* The call after which there is something to do is the last one. */
static void sleep_after_a_buffer(void)
{
    long before = resident_kib();
    for (int i = 0; i < 4; i++) {
        char *volatile buffer = malloc(PEAK);
        REQUIRE(buffer != NULL);
        memset(buffer, 1, PEAK);
        free(buffer);
        REQUIRE(becomes_small(before));
        REQUIRE(become_threads(1));
    }
}

/* It has begun to wait for an hour. */
static void wait_for_less(void)
{
    long before = resident_kib();
    REQUIRE(hakmem_option_set("purge_delay_ms", 3600000) == 0);
    start_helper();
    nap_ms(50);
    REQUIRE(hakmem_option_set("purge_delay_ms", 250) == 0);
    REQUIRE(becomes_small(before));
}

/* A child has none, until it needs one of its own. */
static void fork_beside_it(void)
{
    start_helper();
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            REQUIRE(thread_count() == 1);
            start_helper();
            REQUIRE(become_threads(1));
            _exit(0);
        }
        int status;
        REQUIRE(child > 0 && waitpid(child, &status, 0) == child && status == 0);
        free_a_peak(NULL);
    }
}

static void end_main_thread(void)
{
    start_helper();
    pthread_exit(NULL);
}

static void exit_beside_it(void)
{
    start_helper();
    exit(0);
}

static void exit_at_once(void)
{
    start_helper();
    _exit(0);
}

static void exec_beside_it(void)
{
    start_helper();
    execl("/bin/true", "true", NULL);
}

/* What only a process with one thread may do. */
static void unshare_after_it(void)
{
    start_helper();
    REQUIRE(become_threads(1));
    REQUIRE(syscall(SYS_unshare, CLONE_THREAD) == 0);
}

enum { FORK = 0x1200011, THREAD = 0x3d0f00, MUSL_THREAD = 0x7d0f00 };

/* From now on a new thread ends the process, if so `killed`; else where it is not made as the C
 * library makes threads. */
static void set_filter(bool killed)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 5, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, killed ? 0 : FORK, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, killed ? 0 : THREAD, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, killed ? 0 : MUSL_THREAD, 1, 2),
        BPF_STMT(BPF_RET | BPF_K, killed ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    const struct sock_fprog filter = {sizeof program / sizeof *program, program};
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    REQUIRE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

/* A sandbox that kills for a new thread. */
static void be_sandboxed(void)
{
    start_helper();
    set_filter(true);
    REQUIRE(become_threads(1));
    free_a_peak(NULL);
    REQUIRE(thread_count() == 1);
    nap_ms(500);
    for (int i = 0; i < 100; i++)
        free_a_peak(NULL);
}

/* In a container, whose filter is older than the program. */
static void be_contained(void)
{
    set_filter(false);
    execl("/proc/self/exe", "contained", NULL);
}

/* A thread shows that they are allowed. */
static void *sleep_until(void *gate)
{
    pthread_barrier_wait(gate);
    return gate;
}

static int run_contained(void)
{
    pthread_t thread;
    pthread_barrier_t gate;
    pthread_barrier_init(&gate, NULL, 2);
    free_a_peak(NULL);
    REQUIRE(thread_count() == 1);
    REQUIRE(pthread_create(&thread, NULL, sleep_until, &gate) == 0);
    nap_ms(1100); /* one was refused */
    free_a_peak(NULL);
    REQUIRE(thread_count() == 3);
    pthread_barrier_wait(&gate);
    pthread_join(thread, NULL);
    REQUIRE(become_threads(1));
    pid_t child = fork();
    if (child == 0) {
        free_a_peak(NULL);
        REQUIRE(thread_count() == 1);
        _exit(0);
    }
    int status;
    REQUIRE(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    return 0;
}

static int handled;

static void handle(int signal)
{
    handled += signal;
}

/* It takes no signal that the program's threads block. */
static void block_signals(void)
{
    sigset_t all, pending;
    sigfillset(&all);
    signal(SIGUSR1, handle);
    REQUIRE(pthread_sigmask(SIG_BLOCK, &all, NULL) == 0);
    start_helper();
    for (int i = 0; i < 100; i++) {
        kill(getpid(), SIGUSR1);
        nap_ms(1);
    }
    sigpending(&pending);
    REQUIRE(sigismember(&pending, SIGUSR1) && handled == 0);
}

/* A child that shares the memory calls malloc, as some do before exec: a helper of its own would
 * end with it, in the middle of anything. */
static int use_and_exit(void *argument)
{
    free_a_peak(argument);
    _exit(thread_count() == 1 ? 0 : 1);
}

/* The thread has not called malloc itself. */
static void *lend_memory(void *argument)
{
    static char stack[256 * 1024];
    int status, flags = CLONE_VM | CLONE_VFORK | SIGCHLD;
    pid_t child = clone(use_and_exit, stack + sizeof stack, flags, NULL);
    REQUIRE(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    return argument;
}

static void lend_memory_to_a_child(void)
{
    free(malloc(1)); /* from here on the library knows who its process is */
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        lend_memory(NULL);
        REQUIRE(pthread_create(&thread, NULL, lend_memory, NULL) == 0);
        REQUIRE(pthread_join(thread, NULL) == 0);
    }
    nap_ms(1100); /* one was refused */
    start_helper();
    REQUIRE(become_threads(1));
}

/* It comes and goes, and leaves nothing behind. */
static void start_often(void)
{
    REQUIRE(hakmem_option_set("purge_delay_ms", 1) == 0);
    free_a_peak(NULL);
    REQUIRE(become_threads(1));
    long mapped = mapped_kib();
    int seen = 0; /* it may be gone again before anybody looks */
    for (int i = 0; i < 50; i++) {
        free_a_peak(NULL);
        seen += thread_count() > 1;
        REQUIRE(become_threads(1));
    }
    REQUIRE(seen > 0);
    /* A few superslabs may be left this time, and were not then. */
    REQUIRE(mapped_kib() < mapped + PEAK / 1024 / 4);
}

static void set_while_running(void)
{
    REQUIRE(hakmem_option_set("background", 0) == 0);
    free_a_peak(NULL);
    REQUIRE(become_threads(1));
    free_a_peak(NULL);
    REQUIRE(thread_count() == 1);
}

static void test_each_in_a_process_of_its_own(void **state)
{
    static void (*const bodies[])(void) = {
        sleep_after_a_peak, fork_beside_it,       end_main_thread,   exit_beside_it,
        exit_at_once,       exec_beside_it,       unshare_after_it,  be_sandboxed,
        block_signals,      start_often,          set_while_running, lend_memory_to_a_child,
        be_contained,       sleep_after_a_buffer, wait_for_less,
    };
    (void)state;
    if (prctl(PR_GET_SECCOMP) != 0)
        skip(); /* a container's filter: then there is none */
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(run_guarded(bodies[i], HANG_SECONDS));
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (status)
            print_error("part %zu\n", i);
        assert_int_equal(status, 0);
    }
}

int main(int count, char **arguments)
{
    (void)count;
    if (strcmp(arguments[0], "contained") == 0)
        return run_contained();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_in_a_process_of_its_own)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
