/* os/lock: mutual exclusion, sleepers that are woken, and the states around fork (behaviour 31).
 * A lost wake-up shows as a test that never ends: CTest bounds it. */
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "os/lock.h"
#include "os/os.h"

enum { THREADS = 4, ROUNDS = 30000 };

static struct lock lock;
static uint64_t shared_a, shared_b; /* lock */
static uint32_t entered;            /* atomic */

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
        CHECK((ATOMIC_LOAD_RELAXED(&lock.word) & LOCK_HOLDER) == lock_self());
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
        assert_int_equal(lock.word, lock_self());
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
        assert_int_equal(ATOMIC_LOAD_RELAXED(&lock.word), lock_self() | LOCK_WAITERS);
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

static void held_for_fork_lets_its_thread_in(void **state)
{
    (void)state;
    lock_prepare_fork(&lock);
    assert_int_equal(lock.word, lock_self() | LOCK_FORK);
    for (int i = 0; i < 3; i++) {
        lock_acquire(&lock);
        lock_release(&lock);
        assert_int_equal(lock.word, lock_self() | LOCK_FORK);
    }
    /* A second prepare, by a handler of the same fork, changes nothing. */
    lock_prepare_fork(&lock);
    assert_int_equal(lock.word, lock_self() | LOCK_FORK);
    lock_finish_fork(&lock);
    check_open();
    /* Finish without prepare, as in a process that registered late, changes nothing either. */
    lock_finish_fork(&lock);
    check_open();
}

static void held_for_fork_keeps_others_out(void **state)
{
    (void)state;
    pthread_t thread[THREADS];
    for (int round = 0; round < 10; round++) {
        lock_prepare_fork(&lock);
        start_sleepers(thread);
        assert_int_equal(ATOMIC_LOAD_RELAXED(&lock.word), lock_self() | LOCK_FORK | LOCK_WAITERS);
        lock_acquire(&lock);
        lock_release(&lock);
        assert_int_equal(ATOMIC_LOAD_RELAXED(&lock.word), lock_self() | LOCK_FORK | LOCK_WAITERS);
        assert_int_equal(ATOMIC_LOAD_RELAXED(&entered), 0);
        lock_finish_fork(&lock);
        join_sleepers(thread);
    }
}

static void an_interrupted_holder_keeps_the_lock(void **state)
{
    (void)state;
    pthread_t thread[THREADS];
    lock_acquire(&lock);
    lock_prepare_fork(&lock);
    assert_int_equal(lock.word, lock_self());
    lock_finish_fork(&lock);
    assert_int_equal(lock.word, lock_self());
    start_sleepers(thread);
    lock_prepare_fork(&lock);
    lock_finish_fork(&lock);
    assert_int_equal(ATOMIC_LOAD_RELAXED(&entered), 0);
    lock_release(&lock);
    join_sleepers(thread);
}

/* The child's thread has another id: it adopts the locks that its old id holds. Its copy of the
 * lock opens although its sleepers do not exist there. */
static void go_on_in_child(uint32_t before)
{
    alarm(10);
    CHECK(lock_self() == (uint32_t)gettid() && lock_self() != before);
    lock_adopt_in_child(&lock, before);
    CHECK(lock.word == 0);
    for (int i = 0; i < 10; i++) {
        lock_acquire(&lock);
        CHECK(lock.word == lock_self());
        lock_release(&lock);
    }
    lock_prepare_fork(&lock);
    lock_finish_fork(&lock);
    CHECK(lock.word == 0);
    lock_adopt_in_child(&lock, before);
    CHECK(lock.word == 0);
    _exit(0);
}

static void both_sides_of_a_fork_go_on(void **state)
{
    (void)state;
    pthread_t thread[THREADS];
    uint32_t before = lock_self();
    lock_prepare_fork(&lock);
    start_sleepers(thread);
    pid_t child = fork();
    if (child == 0)
        go_on_in_child(before);
    lock_finish_fork(&lock);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    join_sleepers(thread);
}

/* A signal handler that interrupted a holder forks: the child is the holder too, by its new id. */
static void an_interrupted_holder_goes_on_in_the_child(void **state)
{
    (void)state;
    uint32_t before = lock_self();
    lock_acquire(&lock);
    lock_prepare_fork(&lock);
    pid_t child = fork();
    if (child == 0) {
        alarm(10);
        lock_adopt_in_child(&lock, before);
        CHECK(lock.word == lock_self());
        lock_release(&lock);
        CHECK(lock.word == 0);
        lock_acquire(&lock);
        lock_release(&lock);
        _exit(0);
    }
    lock_finish_fork(&lock);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(lock.word, before);
    lock_release(&lock);
    check_open();
}

static void *tell_id(void *id)
{
    *(uint32_t *)id = lock_self();
    CHECK(lock_self() == *(uint32_t *)id && *(uint32_t *)id == (uint32_t)gettid());
    return NULL;
}

static void threads_have_ids_of_their_own(void **state)
{
    (void)state;
    pthread_t thread;
    uint32_t id = 0;
    assert_int_equal(lock_self(), gettid());
    assert_true(os_thread_exists(lock_self()));
    assert_int_equal(pthread_create(&thread, NULL, tell_id, &id), 0);
    pthread_join(thread, NULL);
    assert_int_not_equal(id, 0);
    assert_int_not_equal(id, lock_self());
    assert_int_equal(id & ~LOCK_HOLDER, 0);
    /* pthread_join may return a moment before the kernel forgets the thread. */
    for (int i = 0; i < 1000 && os_thread_exists(id); i++)
        sleep_ms(1);
    assert_false(os_thread_exists(id));
}

static uint32_t stop_forking; /* atomic */

static void *prepare_and_finish(void *argument)
{
    (void)argument;
    while (!ATOMIC_LOAD_RELAXED(&stop_forking)) {
        lock_prepare_fork(&lock);
        shared_a++;
        lock_acquire(&lock);
        shared_b++;
        lock_release(&lock);
        CHECK(shared_a == shared_b);
        lock_finish_fork(&lock);
        sched_yield();
    }
    return NULL;
}

static void fork_and_normal_use_exclude_each_other(void **state)
{
    (void)state;
    pthread_t thread[THREADS], forker;
    shared_a = shared_b = 0;
    stop_forking = 0;
    assert_int_equal(pthread_create(&forker, NULL, prepare_and_finish, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, count_up, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    ATOMIC_STORE_RELAXED(&stop_forking, 1);
    pthread_join(forker, NULL);
    assert_true(shared_a >= THREADS * ROUNDS);
    assert_int_equal(shared_a, shared_b);
    check_open();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_at_a_time),
        cmocka_unit_test(uncontended_use_makes_no_system_call),
        cmocka_unit_test(sleepers_are_all_woken),
        cmocka_unit_test(entering_twice_is_fatal),
        cmocka_unit_test(held_for_fork_lets_its_thread_in),
        cmocka_unit_test(held_for_fork_keeps_others_out),
        cmocka_unit_test(an_interrupted_holder_keeps_the_lock),
        cmocka_unit_test(both_sides_of_a_fork_go_on),
        cmocka_unit_test(an_interrupted_holder_goes_on_in_the_child),
        cmocka_unit_test(threads_have_ids_of_their_own),
        cmocka_unit_test(fork_and_normal_use_exclude_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
