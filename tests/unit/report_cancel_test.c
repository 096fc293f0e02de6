/* observe/stats: a thread that is cancelled asynchronously while it gathers statistics first comes
 * to the end of that, with no lock in its hand. */
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "api/alloc.h"
#include "report/stats.h"
#include "thread/registry.h"

enum { CLASS = 1 };

static struct snapshot snapshot;
static struct hakmem_usage usage;

static void collect(void)
{
    stats_collect(&snapshot);
}

static void collect_class(void)
{
    stats_collect_class(CLASS, &usage);
}

static void collected_class(void)
{
    stats_collected_class(CLASS, &usage);
}

static void *victim_main(void *call)
{
    int before;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
    (*(void (**)(void))call)();
    for (;;)
        pause();
    return NULL;
}

static bool ends_soon(pthread_t thread)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 100000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return pthread_timedjoin_np(thread, NULL, &until) == 0;
}

/* The thread is cancelled while it waits for a lock. */
static void cancel_inside(void (*call)(void))
{
    struct lock *lock = &registry.lock;
    void *result = NULL;
    pthread_t thread;
    lock_acquire(lock);
    CHECK(pthread_create(&thread, NULL, victim_main, &call) == 0);
    while (!(ATOMIC_LOAD_RELAXED(&lock->word) & LOCK_WAITERS))
        sched_yield();
    CHECK(pthread_cancel(thread) == 0);
    bool ended = ends_soon(thread);
    lock_release(lock);
    CHECK(!ended);
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
}

static void statistics_are_gathered_to_the_end(void **state)
{
    (void)state;
    void *block = alloc(1);
    memset(&snapshot, 0, sizeof snapshot);
    cancel_inside(collect);
    assert_true(snapshot.total.metadata_bytes > 0);
    memset(&usage, 0, sizeof usage);
    cancel_inside(collect_class);
    assert_true(usage.committed_bytes > 0);
    memset(&usage, 0, sizeof usage);
    cancel_inside(collected_class);
    assert_true(usage.committed_bytes > 0);
    release(block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statistics_are_gathered_to_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
