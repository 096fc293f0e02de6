/* Watches what the allocator calls while it serves the first calls of the process, the first
 * calls of a thread and the slow paths of a running program (behaviour 26). It needs the spy
 * library and then the allocator preloaded.
 *
 * usage: runtime_spy_main [hog]: "hog" takes the first 40 thread-specific keys before the
 * allocator can have one, so that any key it makes is one whose values the C library allocates.
 */
#include "runtime_spy.h"
#include "runtime_support.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>

#define THREADS 16
#define HOGGED_KEYS 40

static bool hogged;

static void hog_keys(void)
{
    for (unsigned i = 0; i < HOGGED_KEYS; i++) {
        pthread_key_t key;
        REQUIRE(pthread_key_create(&key, NULL) == 0);
    }
    hogged = true;
}

/* Calls of every kind, watched one by one so that nothing else is counted. */
static void watch_calls(uint32_t seed, unsigned rounds)
{
    enum { SLOTS = 600 };
    static __thread void *slots[SLOTS];
    for (unsigned round = 0; round < rounds; round++) {
        unsigned at = random_next(&seed) % SLOTS;
        size_t size = random_size(&seed);
        unsigned kind = random_next(&seed) % 8;
        spy_watch(true);
        if (kind == 0) {
            void *moved = realloc(slots[at], size);
            slots[at] = moved;
        } else {
            free(slots[at]);
            slots[at] = kind == 1   ? calloc(1, size)
                        : kind == 2 ? memalign(256, size)
                                    : malloc(size);
        }
        spy_watch(false);
        REQUIRE(slots[at] != NULL);
    }
    spy_watch(true);
    for (unsigned at = 0; at < SLOTS; at++) {
        free(slots[at]);
        slots[at] = NULL;
    }
    spy_watch(false);
}

static void print_report(const char *where, const struct spy_report *report)
{
    printf(
        "%s: forbidden %u (%s), secure_getenv %u, setspecific %u (high keys %u)\n", where,
        report->forbidden, report->last_forbidden != NULL ? report->last_forbidden : "none",
        report->secure_getenv, report->setspecific, report->high_keys);
    fflush(stdout);
}

static struct spy_report early_report;

/* Runs before any constructor: these are the very first calls of the process. */
static void make_first_calls(int argc, char **argv, char **environment)
{
    (void)environment;
    if (spy_watch == NULL || spy_take_report == NULL) {
        return;
    }
    if (argc > 1 && strcmp(argv[1], "hog") == 0) {
        hog_keys();
    }
    watch_calls(1, 100);
    early_report = spy_take_report();
}

__attribute__((section(".preinit_array"), used)) static void (*const before_constructors)(
    int, char **, char **) = make_first_calls;

static void *thread_main(void *argument)
{
    watch_calls((uint32_t)(uintptr_t)argument + 100, 3000);
    return NULL;
}

static void check_report(const char *where, const struct spy_report *report, unsigned threads)
{
    print_report(where, report);
    REQUIRE(report->forbidden == 0);
    REQUIRE(report->setspecific <= threads);
    REQUIRE(hogged || report->high_keys == 0);
}

int main(void)
{
    if (spy_watch == NULL || spy_take_report == NULL) {
        say("runtime_spy_main: the spy library is not preloaded\n");
        return 2;
    }
    watchdog(HANG_SECONDS, "watched calls");
    check_report("first calls of the process", &early_report, 1);

    watch_calls(2, 30000);
    struct spy_report report = spy_take_report();
    check_report("main thread", &report, early_report.setspecific == 0 ? 1 : 0);
    REQUIRE(report.secure_getenv == 0);

    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, thread_main, (void *)i) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    report = spy_take_report();
    check_report("threads", &report, THREADS);
    REQUIRE(report.secure_getenv == 0);

    /* The spy must see what it claims to see. */
    spy_watch(true);
    char *value = getenv("PATH");
    spy_watch(false);
    report = spy_take_report();
    (void)value;
    REQUIRE(report.forbidden == 1);
    return 0;
}
