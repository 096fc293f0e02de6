/* os/lock and os/identity: mutual exclusion, sleepers that are woken, and what a new process finds
 * (behaviours 31 and 45).
 * A lost wake-up shows as a test that never ends: CTest bounds it. */
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#include "os/lock.h"
#include "os/os.h"
#include "thread/heap.h"

enum { THREADS = 4, ROUNDS = 30000 };

static struct lock lock;
static uint64_t shared_a, shared_b; /* lock */
static uint32_t entered;            /* atomic */

static uint32_t own_id(void)
{
    return identity_thread(identity_self());
}

static void sleep_ms(long milliseconds)
{
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static void *count_up(void *argument)
{
    (void)argument;
    for (int i = 0; i < ROUNDS; i++) {
        lock_acquire(&lock);
        CHECK((ATOMIC_LOAD_RELAXED(&lock.word) & LOCK_HOLDER) == own_id());
        shared_a++;
        if (i % 1000 == 0)
            sched_yield(); /* the others pile up and sleep */
        shared_b++;
        CHECK(shared_a == shared_b);
        lock_release(&lock);
    }
    return NULL;
}

static void *enter_once(void *argument)
{
    (void)argument;
    lock_acquire(&lock);
    ATOMIC_ADD_RELAXED(&entered, 1);
    lock_release(&lock);
    return NULL;
}

static void check_open(void)
{
    assert_int_equal(lock.word, 0);
}

static void one_thread_at_a_time(void **state)
{
    (void)state;
    pthread_t thread[THREADS];
    shared_a = shared_b = 0;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, count_up, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(shared_a, THREADS * ROUNDS);
    check_open();
}

static void uncontended_use_makes_no_system_call(void **state)
{
    (void)state;
    uint64_t before = os_counts[OS_FUTEX];
    for (int i = 0; i < 1000; i++) {
        lock_acquire(&lock);
        assert_int_equal(lock.word, own_id());
        lock_release(&lock);
    }
    assert_int_equal(os_counts[OS_FUTEX], before);
    check_open();
}

/* Starts threads that want the lock, and waits until they sleep for it. */
static void start_sleepers(pthread_t thread[THREADS])
{
    uint64_t before = ATOMIC_LOAD_RELAXED(&os_counts[OS_FUTEX]);
    entered = 0;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, enter_once, NULL), 0);
    while (ATOMIC_LOAD_RELAXED(&os_counts[OS_FUTEX]) < before + THREADS)
        sleep_ms(1);
    assert_int_equal(ATOMIC_LOAD_RELAXED(&entered), 0);
}

static void join_sleepers(pthread_t thread[THREADS])
{
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(entered, THREADS);
    check_open();
}

static void sleepers_are_all_woken(void **state)
{
    (void)state;
    pthread_t thread[THREADS];
    for (int round = 0; round < 20; round++) {
        lock_acquire(&lock);
        start_sleepers(thread);
        assert_int_equal(ATOMIC_LOAD_RELAXED(&lock.word), own_id() | LOCK_WAITERS);
        lock_release(&lock);
        join_sleepers(thread);
    }
}

static void lock_twice(void *argument)
{
    (void)argument;
    lock_acquire(&lock);
    lock_acquire(&lock);
}

static void entering_twice_is_fatal(void **state)
{
    (void)state;
    unit_expect_abort(
        lock_twice, NULL,
        "hakmem: malloc or free called by a signal handler that interrupted malloc or free");
    check_open();
}

/* What the new process finds: how often it was put right, and the lock then. */
static struct {
    int count;
    bool lost;
} repairs;

/* musl's gettid knows nothing of a bare clone. */
static uint32_t kernel_id(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

static void repair(uint32_t before, uint32_t now)
{
    CHECK(now == kernel_id() && before != now);
    repairs.count++;
    repairs.lost = lock_is_lost(&lock, before);
    lock_inherit(&lock, before, now);
}

static pid_t make_child(bool by_fork)
{
    identity_before_fork();
    pid_t child = by_fork ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        alarm(HANG_SECONDS);
        if (by_fork)
            identity_in_child();
    }
    return child;
}

static void await_child(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* Each process has a number of its own; the handlers of fork do not count it as two. */
static void a_child_is_another_process(void **state)
{
    (void)state;
    uint64_t parent = identity_self();
    for (int by_fork = 0; by_fork < 2; by_fork++) {
        pid_t child = make_child(by_fork);
        if (child == 0) {
            CHECK(identity_process_number() == 0 && !identity_is_local(parent));
            uint64_t self = identity_self();
            CHECK(self >> 32 == (parent >> 32) + 1 && own_id() == kernel_id());
            CHECK(identity_is_local(self) && !identity_is_local(parent));
            CHECK(repairs.count == 1 && !repairs.lost);
            identity_in_child();
            CHECK(identity_self() == self && repairs.count == 1);
            pid_t grandchild = make_child(by_fork);
            if (grandchild == 0)
                _exit(identity_self() >> 32 == (parent >> 32) + 2 ? 0 : 1);
            int status;
            CHECK(waitpid(grandchild, &status, 0) == grandchild && status == 0);
            _exit(0);
        }
        await_child(child);
    }
    assert_int_equal(identity_self(), parent);
    assert_int_equal(repairs.count, 0);
}

static void *tell_identity(void *identity)
{
    *(uint64_t *)identity = identity_self();
    return NULL;
}

/* A child that shares the memory is no process of its own. */
static int share_memory(void *identity)
{
    tell_identity(identity);
    return 0;
}

static void a_child_that_shares_memory_is_not(void **state)
{
    (void)state;
    /* That sanitizer would take parent and child, which run at once, for one thread. */
    if (HAKMEM_SANITIZE_THREAD)
        skip();
    static char stack[64 * 1024] __attribute__((aligned(16)));
    uint64_t parent = identity_self(), child = 0;
    await_child(clone(share_memory, stack + sizeof stack, CLONE_VM | SIGCHLD, &child));
    assert_int_equal(child, parent);
    assert_int_equal(identity_self(), parent);
}

/* The thread that made the child asks after one that it started there. */
static void a_second_thread_may_ask_first(void **state)
{
    (void)state;
    uint64_t parent = identity_self();
    pid_t child = make_child(false);
    if (child == 0) {
        pthread_t thread;
        uint64_t other = 0;
        CHECK(pthread_create(&thread, NULL, tell_identity, &other) == 0);
        pthread_join(thread, NULL);
        CHECK(other >> 32 == (parent >> 32) + 1 && repairs.count == 1);
        CHECK(identity_self() >> 32 == other >> 32 && identity_self() != other);
        _exit(0);
    }
    await_child(child);
}

/* The lock of a thread that the child lacks is lost, and so are those who wait for it. */
static void *hold_lock(void *argument)
{
    lock_acquire(&lock);
    ATOMIC_STORE_RELAXED((int *)argument, 1);
    while (ATOMIC_LOAD_RELAXED((int *)argument) == 1)
        sleep_ms(1);
    lock_release(&lock);
    return NULL;
}

static void a_lost_lock_opens(void **state)
{
    (void)state;
    pthread_t holder, thread[THREADS];
    int phase = 0;
    assert_int_equal(pthread_create(&holder, NULL, hold_lock, &phase), 0);
    while (ATOMIC_LOAD_RELAXED(&phase) == 0)
        sleep_ms(1);
    start_sleepers(thread);
    pid_t child = make_child(true);
    if (child == 0) {
        for (int i = 0; i < 10; i++) {
            lock_acquire(&lock);
            CHECK(repairs.count == 1 && repairs.lost && lock.word == own_id());
            lock_release(&lock);
            CHECK(lock.word == 0);
        }
        _exit(0);
    }
    await_child(child);
    ATOMIC_STORE_RELAXED(&phase, 2);
    pthread_join(holder, NULL);
    join_sleepers(thread);
}

/* A signal handler that interrupted a holder forks: the child is the holder too, by its new id. */
static void an_interrupted_holder_goes_on_in_the_child(void **state)
{
    (void)state;
    uint32_t before = own_id();
    lock_acquire(&lock);
    pid_t child = make_child(true);
    if (child == 0) {
        CHECK(own_id() != before && lock.word == own_id() && !repairs.lost);
        lock_release(&lock);
        CHECK(lock.word == 0);
        lock_acquire(&lock);
        lock_release(&lock);
        _exit(0);
    }
    await_child(child);
    assert_int_equal(lock.word, before);
    lock_release(&lock);
    check_open();
}

static void *tell_id(void *id)
{
    *(uint32_t *)id = own_id();
    CHECK(own_id() == *(uint32_t *)id && *(uint32_t *)id == (uint32_t)gettid());
    return NULL;
}

static void threads_have_ids_of_their_own(void **state)
{
    (void)state;
    pthread_t thread;
    uint32_t id = 0;
    assert_int_equal(own_id(), gettid());
    assert_true(os_thread_exists(own_id()));
    assert_int_equal(pthread_create(&thread, NULL, tell_id, &id), 0);
    pthread_join(thread, NULL);
    assert_int_not_equal(id, 0);
    assert_int_not_equal(id, own_id());
    assert_int_equal(id & ~LOCK_HOLDER, 0);
    /* pthread_join may return a moment before the kernel forgets the thread. */
    for (int i = 0; i < 1000 && os_thread_exists(id); i++)
        sleep_ms(1);
    assert_false(os_thread_exists(id));
}

int main(void)
{
    heap_prepare_fork(); /* else the allocator's own initialisation, before fork, would be later */
    identity_start(repair);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_at_a_time),
        cmocka_unit_test(uncontended_use_makes_no_system_call),
        cmocka_unit_test(sleepers_are_all_woken),
        cmocka_unit_test(entering_twice_is_fatal),
        cmocka_unit_test(threads_have_ids_of_their_own),
        cmocka_unit_test(a_child_is_another_process),
        cmocka_unit_test(a_child_that_shares_memory_is_not),
        cmocka_unit_test(a_second_thread_may_ask_first),
        cmocka_unit_test(a_lost_lock_opens),
        cmocka_unit_test(an_interrupted_holder_goes_on_in_the_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
