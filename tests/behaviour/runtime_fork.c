/* fork while many threads allocate: the child allocates, frees what others allocated, creates
 * threads and forks again, while atfork handlers registered before and after the allocator's own
 * allocate too (behaviour 31).
 *
 * usage: runtime_fork [THREADS [FORKS]]
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

#define SHARED_SLOTS 256
#define THREAD_SLOTS 64
#define FORKING_THREADS 2

static unsigned thread_count = 8;
static unsigned fork_count = 800;

/* Blocks change hands here, so that children free what threads they do not have allocated. */
static _Atomic(void *) shared_slots[SHARED_SLOTS];
static atomic_uint forks_left;
static atomic_bool stopping;
static __thread uint32_t thread_seed = 77;

/* Mostly small, and of fewer classes the more threads there are: each page that a thread writes to
 * after a fork is copied, and costs more time than all else here. */
static size_t fork_size(uint32_t *seed)
{
    size_t size = random_size(seed);
    return random_next(seed) % 512 == 0 ? size : size % (thread_count > 16 ? 50 : 500);
}

static void hand_over(uint32_t *seed)
{
    unsigned at = random_next(seed) % SHARED_SLOTS;
    void *block = malloc(1 + fork_size(seed));
    REQUIRE(block != NULL);
    *(unsigned char *)block = 1;
    free(atomic_exchange(&shared_slots[at], block));
}

static void allocate_some(uint32_t *seed, unsigned rounds)
{
    void *slots[THREAD_SLOTS] = {NULL};
    size_t sizes[THREAD_SLOTS];
    for (unsigned round = 0; round < rounds; round++) {
        unsigned at = random_next(seed) % THREAD_SLOTS;
        if (slots[at] != NULL) {
            REQUIRE(pattern_holds(slots[at], sizes[at], at));
            free(slots[at]);
        }
        sizes[at] = fork_size(seed);
        slots[at] = malloc(sizes[at]);
        REQUIRE(slots[at] != NULL);
        pattern_fill(slots[at], sizes[at], at);
        if (round % 8 == 0) {
            hand_over(seed);
        }
    }
    for (unsigned at = 0; at < THREAD_SLOTS; at++) {
        free(slots[at]);
    }
}

/* More blocks of one size than any magazine holds at first: the shared structures are needed. */
static void allocate_run(size_t size)
{
    void *blocks[120];
    for (unsigned i = 0; i < 120; i++) {
        blocks[i] = malloc(size);
        REQUIRE(blocks[i] != NULL);
        *(char *)blocks[i] = 1;
    }
    for (unsigned i = 0; i < 120; i++) {
        free(blocks[i]);
    }
}

/* The handlers of others. What prepare allocates, the parent's and the child's handlers free. */
static __thread void *prepared[2];

static void handler_prepare(unsigned which)
{
    REQUIRE(prepared[which] == NULL);
    allocate_run(16 + random_next(&thread_seed) % 500);
    hand_over(&thread_seed);
    prepared[which] = malloc(1 + random_next(&thread_seed) % 40000);
    REQUIRE(prepared[which] != NULL);
}

static void handler_finish(unsigned which)
{
    allocate_run(16 + random_next(&thread_seed) % 500);
    free(prepared[which]);
    prepared[which] = NULL;
    hand_over(&thread_seed);
}

static void early_prepare(void)
{
    handler_prepare(0);
}

static void early_finish(void)
{
    handler_finish(0);
}

static void late_prepare(void)
{
    handler_prepare(1);
}

static void late_finish(void)
{
    handler_finish(1);
}

/* Before any constructor and so before any handler that the allocator may register. */
static void register_early(void)
{
    REQUIRE(pthread_atfork(early_prepare, early_finish, early_finish) == 0);
}

__attribute__((section(".preinit_array"), used)) static void (*const before_constructors)(void) =
    register_early;

static void *child_thread_main(void *argument)
{
    uint32_t seed = (uint32_t)(uintptr_t)argument;
    allocate_some(&seed, 100);
    return NULL;
}

static void wait_for(pid_t child)
{
    int status;
    pid_t ended;
    do {
        ended = waitpid(child, &status, 0);
    } while (ended < 0 && errno == EINTR);
    REQUIRE(ended == child);
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void child_main(unsigned number)
{
    uint32_t seed = number * 2654435761u + 1;
    allocate_some(&seed, 150);
    for (unsigned at = number % 4; at < SHARED_SLOTS; at += 4) {
        free(atomic_exchange(&shared_slots[at], NULL));
    }
    if (number % 8 == 0) {
        pthread_t threads[2];
        for (uintptr_t i = 0; i < 2; i++) {
            REQUIRE(pthread_create(&threads[i], NULL, child_thread_main, (void *)(i + 1)) == 0);
        }
        if (number % 16 == 0) {
            pid_t grandchild = fork();
            REQUIRE(grandchild >= 0);
            if (grandchild == 0) {
                allocate_some(&seed, 100);
                _exit(0);
            }
            wait_for(grandchild);
        }
        for (unsigned i = 0; i < 2; i++) {
            REQUIRE(pthread_join(threads[i], NULL) == 0);
        }
    }
    if (number % 32 == 5) {
        exit(0);
    }
    _exit(0);
}

static void *allocating_main(void *argument)
{
    uint32_t seed = (uint32_t)(uintptr_t)argument + 1;
    /* Naps leave the processors to the forks, however many threads there are. */
    const struct timespec nap = {.tv_nsec = 100000 * (long)thread_count};
    while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
        allocate_some(&seed, 150);
        nanosleep(&nap, NULL);
    }
    return NULL;
}

static void *forking_main(void *argument)
{
    thread_seed += (uint32_t)(uintptr_t)argument;
    unsigned left;
    while ((left = atomic_load(&forks_left)) > 0) {
        if (!atomic_compare_exchange_strong(&forks_left, &left, left - 1)) {
            continue;
        }
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            child_main(left);
        }
        wait_for(child);
        guard_step();
    }
    return NULL;
}

static void fork_many(void)
{
    pthread_t allocating[512];
    pthread_t forking[FORKING_THREADS];
    REQUIRE(thread_count <= 512);
    REQUIRE(pthread_atfork(late_prepare, late_finish, late_finish) == 0);
    atomic_store(&forks_left, fork_count / 10);
    for (uintptr_t i = 0; i < thread_count; i++) {
        REQUIRE(pthread_create(&allocating[i], NULL, allocating_main, (void *)i) == 0);
    }
    forking_main(NULL);
    long resident = resident_kib();
    atomic_store(&forks_left, fork_count - fork_count / 10);
    for (uintptr_t i = 0; i < FORKING_THREADS; i++) {
        REQUIRE(pthread_create(&forking[i], NULL, forking_main, (void *)i) == 0);
    }
    for (unsigned i = 0; i < FORKING_THREADS; i++) {
        REQUIRE(pthread_join(forking[i], NULL) == 0);
    }
    atomic_store(&stopping, true);
    for (unsigned i = 0; i < thread_count; i++) {
        REQUIRE(pthread_join(allocating[i], NULL) == 0);
    }
    /* What the threads hold at a time varies by some blocks of megabytes; a leak by fork would
     * add at least a page each time. */
    REQUIRE(resident_kib() - resident < 16 * 1024 + 2 * (long)fork_count / 10);
}

/* behaviour 31 */
static void test_fork_while_threads_allocate(void **state)
{
    (void)state;
    assert_int_equal(run_guarded(fork_many, HANG_SECONDS), 0);
}

int main(int argc, char **argv)
{
    (void)hakmem_version();
    if (argc > 1) {
        thread_count = (unsigned)strtoul(argv[1], NULL, 10);
    }
    if (argc > 2) {
        fork_count = (unsigned)strtoul(argv[2], NULL, 10);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fork_while_threads_allocate),
    };
    return cmocka_run_group_tests_name("runtime_fork", tests, NULL, NULL);
}
