/* Eight threads and the first one allocate, by each function of the family in turn, until the limit
 * on address space refuses (behaviours 13, 17 and 37): the calls fail with ENOMEM and nothing else,
 * what was had stays intact and is zeroed or aligned as asked for, and after all was freed the same
 * amount is there again.
 */
#include "runtime_support.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#include <hakmem/hakmem.h>

#define THREADS 8
#define ROUNDS 2
#define LIMIT_BYTES ((rlim_t)128 << 20)

enum function {
    BY_MALLOC,
    BY_REALLOC,
    BY_CALLOC,
    BY_ALIGNED_ALLOC,
    BY_MEMALIGN,
    BY_POSIX_MEMALIGN,
    BY_VALLOC,
    BY_PVALLOC,
    FUNCTIONS
};

struct link {
    struct link *next;
};

static const struct {
    size_t size, alignment;
} shapes[] = {{144, 16}, {4096, 128}, {70000, 4096}, {3 << 20, 1 << 16}};

static enum function function;
static size_t size, alignment;
static pthread_barrier_t barrier;
static atomic_size_t totals[ROUNDS];

static void *resized(void)
{
    void *block = malloc(16);
    void *longer = block ? realloc(block, size) : NULL;
    if (!longer) {
        free(block);
    }
    return longer;
}

static void *posix_aligned(void)
{
    void *block = &block, *before = block;
    int error = posix_memalign(&block, alignment, size);
    REQUIRE(error == 0 || (error == ENOMEM && block == before));
    return error ? NULL : block;
}

static struct link *allocate_one(void)
{
    switch (function) {
    case BY_MALLOC:
        return malloc(size);
    case BY_REALLOC:
        return resized();
    case BY_CALLOC:
        return calloc(size, 1);
    case BY_ALIGNED_ALLOC:
        return aligned_alloc(alignment, size);
    case BY_MEMALIGN:
        return memalign(alignment, size);
    case BY_POSIX_MEMALIGN:
        return posix_aligned();
    case BY_VALLOC:
        return valloc(size);
    default:
        return pvalloc(size);
    }
}

static size_t promised_alignment(void)
{
    if (function == BY_VALLOC || function == BY_PVALLOC) {
        return (size_t)sysconf(_SC_PAGESIZE);
    }
    return function >= BY_ALIGNED_ALLOC ? alignment : 16;
}

static void check_one(const struct link *link)
{
    REQUIRE((uintptr_t)link % promised_alignment() == 0);
    const unsigned char *bytes = (const unsigned char *)link;
    if (function == BY_CALLOC) {
        REQUIRE(bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
    }
}

/* What the block takes at least: in the hardened preset its usable bytes are those asked for. */
static size_t taken_by(struct link *link)
{
    size_t step = promised_alignment();
    return (malloc_usable_size(link) + step - 1) / step * step;
}

static void fill_and_free(unsigned round, unsigned tag)
{
    struct link *first = NULL;
    size_t bytes = 0;
    for (;;) {
        errno = 0;
        struct link *link = allocate_one();
        if (!link) {
            REQUIRE(errno == ENOMEM || function == BY_POSIX_MEMALIGN);
            break;
        }
        check_one(link);
        pattern_fill(link + 1, size - sizeof *link, tag);
        link->next = first;
        first = link;
        bytes += taken_by(link);
    }
    atomic_fetch_add(&totals[round], bytes);
    pthread_barrier_wait(&barrier);
    while (first) {
        struct link *next = first->next;
        REQUIRE(pattern_holds(first + 1, size - sizeof *first, tag));
        free(first);
        first = next;
    }
    pthread_barrier_wait(&barrier);
}

static void *thread_main(void *argument)
{
    pthread_barrier_wait(&barrier); /* until the limit is set */
    for (unsigned round = 0; round < ROUNDS; round++) {
        fill_and_free(round, (unsigned)(uintptr_t)argument + 10 * round);
    }
    return NULL;
}

/* In a child of its own each, so that one finds nothing of the other. */
static void run_one(void)
{
    pthread_t threads[THREADS];
    pthread_attr_t attributes;
    const struct rlimit limit = {LIMIT_BYTES, LIMIT_BYTES};
    REQUIRE(pthread_barrier_init(&barrier, NULL, THREADS + 1) == 0);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 * 1024);
    for (uintptr_t i = 0; i < THREADS; i++) {
        REQUIRE(pthread_create(&threads[i], &attributes, thread_main, (void *)(i + 1)) == 0);
    }
    REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
    pthread_barrier_wait(&barrier);
    for (unsigned round = 0; round < ROUNDS; round++) {
        fill_and_free(round, 10 * round);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    size_t first = atomic_load(&totals[0]), second = atomic_load(&totals[1]);
    REQUIRE(first >= LIMIT_BYTES / 4 && second >= first / 8 * 7);
}

static void exhaust_by_all(void)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (function = 0; function < FUNCTIONS; function++) {
            size = shapes[i].size;
            alignment = shapes[i].alignment;
            pid_t child = fork();
            REQUIRE(child >= 0);
            if (child == 0) {
                run_one();
                _exit(0);
            }
            int status;
            REQUIRE(waitpid(child, &status, 0) == child && status == 0);
            guard_step();
        }
    }
}

/* behaviours 13, 17, 37 */
static void test_exhaustion_by_threads(void **state)
{
    (void)state;
    assert_int_equal(run_guarded(exhaust_by_all, HANG_SECONDS), 0);
}

int main(void)
{
    (void)hakmem_version();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exhaustion_by_threads),
    };
    return cmocka_run_group_tests_name("runtime_exhaust", tests, NULL, NULL);
}
