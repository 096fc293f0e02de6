/* No call is a cancellation point, not even the one that prints, and a thread that is cancelled
 * asynchronously inside a call leaves no lock held (behaviour 36).
 */
#include "runtime_support.h"

#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include <hakmem/hakmem.h>

#define SLOTS 200
#define CANCELS 2000

/* Every function of the family but those that print, through the slow paths too. */
static void call_everything(uint32_t seed)
{
    void *slots[SLOTS] = {NULL};
    for (unsigned round = 0; round < 20000; round++) {
        unsigned at = random_next(&seed) % SLOTS;
        size_t size = random_size(&seed);
        switch (random_next(&seed) % 8) {
        case 0:
            slots[at] = realloc(slots[at], size);
            break;
        case 1:
            free(slots[at]);
            slots[at] = calloc(1, size);
            break;
        case 2:
            free(slots[at]);
            slots[at] = memalign(128, size);
            break;
        default:
            free(slots[at]);
            slots[at] = malloc(size);
            break;
        }
        REQUIRE(slots[at] != NULL);
        REQUIRE(malloc_usable_size(slots[at]) >= size);
    }
    for (unsigned at = 0; at < SLOTS; at++) {
        free(slots[at]);
    }
    void *block = NULL;
    REQUIRE(posix_memalign(&block, 4096, 5000) == 0);
    free(block);
    block = reallocarray(NULL, 100, 100);
    free(block);
    block = valloc(100);
    free(block);
    block = pvalloc(100);
    free(block);
    malloc_trim(0);
    (void)mallinfo2();
    (void)hakmem_purge();
    hakmem_thread_flush();
}

static atomic_bool survived;

static void *pending_main(void *argument)
{
    (void)argument;
    int before;
    REQUIRE(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &before) == 0);
    REQUIRE(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before) == 0);
    REQUIRE(pthread_cancel(pthread_self()) == 0);
    call_everything(1);
    atomic_store(&survived, true);
    pthread_testcancel();
    return NULL;
}

/* behaviour 36 */
static void test_no_cancellation_point(void **state)
{
    (void)state;
    pthread_t thread;
    void *result = NULL;
    watchdog(HANG_SECONDS, "a thread with a pending cancellation");
    atomic_store(&survived, false);
    assert_int_equal(pthread_create(&thread, NULL, pending_main, NULL), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    watchdog(0, "");
    assert_true(atomic_load(&survived));
    assert_ptr_equal(result, PTHREAD_CANCELED);
}

/* Needs every lock that a victim may have held. */
static void use_all_sizes(void)
{
    for (size_t size = 8; size <= 4u << 20; size += size / 4 + 8) {
        void *run[200];
        unsigned count = size < 2048 ? 200 : 3;
        for (unsigned i = 0; i < count; i++) {
            run[i] = malloc(size);
            REQUIRE(run[i] != NULL);
            pattern_fill(run[i], size < 64 ? size : 64, i);
        }
        for (unsigned i = 0; i < count; i++) {
            REQUIRE(pattern_holds(run[i], size < 64 ? size : 64, i));
            free(run[i]);
        }
    }
}

static void *printing_main(void *argument)
{
    int before;
    REQUIRE(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &before) == 0);
    REQUIRE(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before) == 0);
    REQUIRE(pthread_cancel(pthread_self()) == 0);
    if (argument == NULL) {
        malloc_stats();
    } else {
        malloc_info(0, argument);
    }
    atomic_store(&survived, true);
    pthread_testcancel();
    return NULL;
}

/* True when the thread came back from the call, and could be cancelled then. */
static bool prints_and_ends(FILE *stream)
{
    pthread_t thread;
    void *result = NULL;
    atomic_store(&survived, false);
    REQUIRE(pthread_create(&thread, NULL, printing_main, stream) == 0);
    REQUIRE(pthread_join(thread, &result) == 0);
    REQUIRE(result == PTHREAD_CANCELED);
    return atomic_load(&survived);
}

/* behaviours 22, 36: malloc_stats comes back and leaves cancellation as it was. malloc_info may
 * end in the stream's write, as any call for a stream may, but keeps no lock. */
static void test_cancellation_of_reports(void **state)
{
    (void)state;
    int saved = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    FILE *stream = fopen("/dev/null", "w");
    assert_true(saved >= 0 && null >= 0);
    assert_non_null(stream);
    assert_int_equal(setvbuf(stream, NULL, _IONBF, 0), 0);
    watchdog(HANG_SECONDS, "a thread with a pending cancellation that prints");
    assert_true(dup2(null, STDERR_FILENO) >= 0);
    bool came_back = true;
    for (int i = 0; i < 100; i++) {
        came_back &= prints_and_ends(NULL);
        prints_and_ends(stream);
    }
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    assert_true(came_back);
    use_all_sizes();
    watchdog(0, "");
    fclose(stream);
    close(saved);
    close(null);
}

static atomic_uint victim_progress;

/* What the victim keeps is lost with it: a bounded number of blocks, which is its own fault. */
static void *victim_main(void *argument)
{
    uint32_t seed = (uint32_t)(uintptr_t)argument * 2654435761u + 1;
    int before;
    void *run[300];
    REQUIRE(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before) == 0);
    for (;;) {
        size_t size = random_size(&seed);
        size = size < 100000 ? size % 2000 : size;
        unsigned count = size < 2000 ? 300 : 2;
        for (unsigned i = 0; i < count; i++) {
            run[i] = malloc(size);
        }
        for (unsigned i = 0; i < count; i++) {
            free(run[i]);
        }
        atomic_fetch_add_explicit(&victim_progress, 1, memory_order_relaxed);
    }
    return NULL;
}

static void cancel_many(void)
{
    uint32_t seed = 99;
    for (uintptr_t round = 0; round < CANCELS; round++) {
        pthread_t thread;
        void *result;
        unsigned progress = atomic_load(&victim_progress);
        REQUIRE(pthread_create(&thread, NULL, victim_main, (void *)round) == 0);
        while (atomic_load(&victim_progress) == progress) {
            sched_yield();
        }
        for (volatile unsigned wait = random_next(&seed) % 20000; wait > 0; wait--) {
        }
        REQUIRE(pthread_cancel(thread) == 0);
        REQUIRE(pthread_join(thread, &result) == 0);
        REQUIRE(result == PTHREAD_CANCELED);
        if (round % 8 == 0) {
            use_all_sizes();
        }
        guard_step();
    }
    use_all_sizes();
    malloc_trim(0);
}

/* behaviour 36 */
static void test_asynchronous_cancel(void **state)
{
    (void)state;
    assert_int_equal(run_guarded(cancel_many, HANG_SECONDS), 0);
}

int main(void)
{
    (void)hakmem_version();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_cancellation_point),
        cmocka_unit_test(test_cancellation_of_reports),
        cmocka_unit_test(test_asynchronous_cancel),
    };
    return cmocka_run_group_tests_name("runtime_cancel", tests, NULL, NULL);
}
