/* A storm of signals, whose handlers do not allocate, while threads allocate: nothing is damaged,
 * no thread is stuck, errno stays as it was (behaviour 36).
 */
#include "runtime_support.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#include <hakmem/hakmem.h>

#define THREADS 4
#define SLOTS 300
#define STORM_SECONDS 3.0 /* or as much longer as that takes: */
#define INTERRUPTED_MIN 100

static atomic_bool stopping;
static atomic_uint signals_taken;
static atomic_uint interrupted;
static __thread volatile sig_atomic_t in_allocator;

/* Uses much stack and changes errno, as handlers do. */
static void take_signal(int signal_number)
{
    int saved = errno;
    volatile char space[2000];
    for (unsigned i = 0; i < sizeof space; i++) {
        space[i] = (char)signal_number;
    }
    errno = EINTR;
    atomic_fetch_add_explicit(&signals_taken, 1, memory_order_relaxed);
    if (in_allocator) {
        atomic_fetch_add_explicit(&interrupted, 1, memory_order_relaxed);
    }
    errno = saved;
}

static void *allocating_main(void *argument)
{
    uint32_t seed = (uint32_t)(uintptr_t)argument + 1;
    void *slots[SLOTS] = {NULL};
    size_t sizes[SLOTS];
    while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
        unsigned at = random_next(&seed) % SLOTS;
        if (slots[at] != NULL) {
            REQUIRE(pattern_holds(slots[at], sizes[at], at));
        }
        sizes[at] = random_size(&seed);
        errno = 0;
        in_allocator = 1;
        free(slots[at]);
        slots[at] = malloc(sizes[at]);
        in_allocator = 0;
        REQUIRE(slots[at] != NULL);
        REQUIRE(errno == 0);
        pattern_fill(slots[at], sizes[at], at);
    }
    for (unsigned at = 0; at < SLOTS; at++) {
        free(slots[at]);
    }
    return NULL;
}

/* behaviour 36 */
static void test_signal_storm(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = take_signal;
    action.sa_flags = SA_NODEFER; /* handlers nest */
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    watchdog(HANG_SECONDS, "signal storm");
    for (uintptr_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, allocating_main, (void *)i), 0);
    }
    double end = seconds_now() + STORM_SECONDS;
    for (unsigned sent = 0; seconds_now() < end || atomic_load(&interrupted) < INTERRUPTED_MIN;
         sent++) {
        pthread_kill(threads[sent % THREADS], SIGUSR1);
        if (sent % 8 == 0) {
            const struct timespec nap = {.tv_nsec = 20000};
            nanosleep(&nap, NULL);
        }
    }
    atomic_store(&stopping, true);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    watchdog(0, "");
    print_message(
        "%u signals, %u inside a call\n", atomic_load(&signals_taken), atomic_load(&interrupted));
}

int main(void)
{
    (void)hakmem_version();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signal_storm),
    };
    return cmocka_run_group_tests_name("runtime_signals", tests, NULL, NULL);
}
