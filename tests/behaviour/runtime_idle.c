/* Programs that have almost nothing to do any more, and threads that wait: what they freed goes
 * back to the system (behaviours 51 and 52).
 */
#include "runtime_support.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <hakmem/hakmem.h>

#define PEAK_BYTES ((size_t)128 << 20)

static void nap_ms(long milliseconds)
{
    const struct timespec nap = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&nap, NULL);
}

/* Memory that is no business of the allocator's. */
static void *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    return memory;
}

struct peak {
    size_t block_bytes;
    unsigned survivors; /* one in so many is not freed; 0: none */
};

static struct peak peak;

/* Calls after which a peak is gone. What a call gives back is bounded by time, and a busy machine
 * takes that from it. */
enum { CALLS_MAX = 40, PAUSE_MS = 200 };

/* A peak is freed, and then there are five calls a second. */
static void peak_and_few_calls(void)
{
    size_t count = PEAK_BYTES / peak.block_bytes;
    void **blocks = map(count * sizeof *blocks);
    long before = resident_kib();
    for (size_t i = 0; i < count; i++) {
        REQUIRE((blocks[i] = malloc(peak.block_bytes)) != NULL);
        memset(blocks[i], 1, peak.block_bytes);
    }
    REQUIRE(resident_kib() - before > (long)(PEAK_BYTES / 1024 / 10 * 9));
    for (size_t i = 0; i < count; i++)
        if (!peak.survivors || i % peak.survivors)
            free(blocks[i]);
    guard_step();
    /* The array has pages, too, and survivors keep theirs. */
    long kept = (long)(count * sizeof *blocks / 1024);
    if (peak.survivors)
        kept += (long)(count / peak.survivors * (peak.block_bytes + 4096) / 1024);
    int calls = 0;
    while (resident_kib() - before - kept >= (long)(PEAK_BYTES / 1024 / 10)) {
        REQUIRE(calls++ < CALLS_MAX);
        nap_ms(PAUSE_MS);
        free(malloc(100));
    }
}

/* Begins `body` in a process of its own: most of them sleep, and may do so together. */
static pid_t begin(void (*body)(void))
{
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0)
        _exit(run_guarded(body, HANG_SECONDS));
    return child;
}

static void assert_ends_well(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void test_few_calls_give_a_peak_back(void **state)
{
    (void)state;
    enum { PEAKS = 5 };
    static const struct peak peaks[PEAKS] = {
        {64, 0}, {500, 0}, {4096, 20}, {40960, 0}, {3 << 20, 0},
    };
    pid_t children[PEAKS];
    for (int i = 0; i < PEAKS; i++) {
        peak = peaks[i];
        children[i] = begin(peak_and_few_calls);
    }
    for (int i = 0; i < PEAKS; i++)
        assert_ends_well(children[i]);
}

/* Asks as a program that knows jemalloc does. */
static int ask(const char *name)
{
    static int (*mallctl)(const char *, void *, size_t *, void *, size_t);
    if (!mallctl)
        *(void **)&mallctl = dlsym(RTLD_DEFAULT, "mallctl");
    REQUIRE(mallctl != NULL);
    return mallctl(name, NULL, NULL, NULL, 0);
}

static void (*ask_for)(void);

static void purge_of_all_arenas(void)
{
    REQUIRE(ask("arena.4096.purge") == 0);
}

static void figures_for_six_seconds(void)
{
    for (int call = 0; call < 60; call++) {
        nap_ms(100);
        REQUIRE(ask("stats.resident") == 0);
    }
}

/* A peak is freed, and then there is no call of malloc any more. */
static void peak_and_questions(void)
{
    enum { BLOCK = 100 };
    size_t count = PEAK_BYTES / BLOCK;
    void **blocks = map(count * sizeof *blocks);
    memset(blocks, 1, count * sizeof *blocks);
    long before = resident_kib();
    for (size_t i = 0; i < count; i++) {
        REQUIRE((blocks[i] = malloc(BLOCK)) != NULL);
        memset(blocks[i], 1, BLOCK);
    }
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
    guard_step();
    ask_for();
    REQUIRE(resident_kib() - before < (long)(PEAK_BYTES / 1024 / 10));
}

static void test_what_asks_jemalloc_gets_a_peak_back(void **state)
{
    (void)state;
    ask_for = purge_of_all_arenas;
    assert_ends_well(begin(peak_and_questions));
    ask_for = figures_for_six_seconds;
    assert_ends_well(begin(peak_and_questions));
}

enum { THREADS = 60, SIZES = 16, BLOCKS = 14, LONGEST = 32768 };

static pthread_barrier_t used, over;

/* Blocks of many sizes come and go, and then the thread waits for ever. */
static void *use_and_wait(void *argument)
{
    void *blocks[BLOCKS];
    for (int round = 0; round < 4; round++) {
        for (size_t size = LONGEST / SIZES; size <= LONGEST; size += LONGEST / SIZES) {
            for (int i = 0; i < BLOCKS; i++) {
                REQUIRE((blocks[i] = malloc(size)) != NULL);
                memset(blocks[i], 1, size);
            }
            for (int i = 0; i < BLOCKS; i++)
                free(blocks[i]);
        }
    }
    pthread_barrier_wait(&used);
    pthread_barrier_wait(&over);
    for (int i = 0; i < 10000; i++)
        free(malloc((size_t)i % LONGEST));
    return argument;
}

/* Threads cache at most so much after a purge: a block a size, as far as it may be in use, the heap
 * itself, and the used part of the stack. */
static const long cached_kib_max = (LONGEST / 1024 * (SIZES + 1) / 2) + 100;

static void idle_threads(void (*purge)(void))
{
    static pthread_t threads[THREADS];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    pthread_barrier_init(&used, NULL, THREADS + 1);
    pthread_barrier_init(&over, NULL, THREADS + 1);
    long before = resident_kib();
    for (int i = 0; i < THREADS; i++)
        REQUIRE(pthread_create(&threads[i], &attributes, use_and_wait, NULL) == 0);
    pthread_barrier_wait(&used);
    guard_step();
    purge();
    long cached = resident_kib() - before;
    pthread_barrier_wait(&over);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    long more = hardened_kib(HARDENED_THREAD_KIB);
    REQUIRE(cached < THREADS * (cached_kib_max + more) + 8192);
}

static void on_request(void)
{
    malloc_trim(0);
}

static void by_calls_now_and_then(void)
{
    for (int call = 0; call < 100; call++) {
        free(malloc(100));
        nap_ms(25);
    }
}

static void idle_threads_on_request(void)
{
    idle_threads(on_request);
}

static void idle_threads_by_calls(void)
{
    idle_threads(by_calls_now_and_then);
}

static void test_malloc_trim_reaches_idle_threads(void **state)
{
    (void)state;
    assert_ends_well(begin(idle_threads_on_request));
}

static void test_calls_now_and_then_reach_idle_threads(void **state)
{
    (void)state;
    assert_ends_well(begin(idle_threads_by_calls));
}

int main(void)
{
    (void)hakmem_version();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_calls_give_a_peak_back),
        cmocka_unit_test(test_what_asks_jemalloc_gets_a_peak_back),
        cmocka_unit_test(test_malloc_trim_reaches_idle_threads),
        cmocka_unit_test(test_calls_now_and_then_reach_idle_threads),
    };
    return cmocka_run_group_tests_name("runtime_idle", tests, NULL, NULL);
}
