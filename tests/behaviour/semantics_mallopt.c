/* Owns the tests of mallopt: behaviour 22. Each test runs in a child, since what is set stays set.
 */
#include "semantics_support.h"

#include <pthread.h>
#include <time.h>

static const size_t tier_sizes[] = {1, 24, 1000, 1024, 5000, 32768, 40000, 300000, 3 * MIB};

static bool is_filled(const void *block, size_t size, unsigned char byte)
{
    const unsigned char *bytes = block;
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != byte) {
            return false;
        }
    }
    return true;
}

/* behaviour 22: what glibc answers for each of its parameters. */
static void known_parameters_are_accepted(void)
{
    static const int known[] = {
        M_MXFAST,         M_NLBLKS,   M_GRAIN,        M_KEEP,    M_TRIM_THRESHOLD, M_TOP_PAD,
        M_MMAP_THRESHOLD, M_MMAP_MAX, M_CHECK_ACTION, M_PERTURB, M_ARENA_TEST,     M_ARENA_MAX,
    };
    static const int values[] = {0, 1, 64, 160};
    static const int unknown[] = {0, 5, 6, 1000, 12345, -9, -100, -32768};
    errno = ERRNO_MARK;
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        for (size_t k = 0; k < COUNT_OF(values); k++) {
            CHILD_CHECK(mallopt(known[i], values[k]) == 1);
        }
    }
    CHILD_CHECK(mallopt(M_MMAP_MAX, 64 * 1024) == 1);
    CHILD_CHECK(mallopt(M_MMAP_THRESHOLD, 64 * 1024) == 1);
    CHILD_CHECK(mallopt(M_TOP_PAD, 64 * 1024) == 1);
    CHILD_CHECK(mallopt(M_TRIM_THRESHOLD, -1) == 1);
    CHILD_CHECK(mallopt(M_PERTURB, 0xa5) == 1);
    /* A fast bin cannot be so large, or of a negative size. */
    CHILD_CHECK(mallopt(M_MXFAST, 161) == 0);
    CHILD_CHECK(mallopt(M_MXFAST, -1) == 0);
    for (size_t i = 0; i < COUNT_OF(unknown); i++) {
        CHILD_CHECK(mallopt(unknown[i], 1) == 0);
    }
    CHILD_CHECK(errno == ERRNO_MARK);
}

/* behaviour 22: hints neither fail nor change what calls do. */
static void hints_change_nothing(void)
{
    CHILD_CHECK(mallopt(M_MMAP_THRESHOLD, 0) == 1 && mallopt(M_MMAP_MAX, 0) == 1);
    CHILD_CHECK(mallopt(M_ARENA_MAX, 1) == 1 && mallopt(M_MXFAST, 0) == 1);
    for (size_t i = 0; i < COUNT_OF(tier_sizes); i++) {
        unsigned char *block = malloc(tier_sizes[i]);
        CHILD_CHECK(block != NULL);
        pattern_fill(block, tier_sizes[i], 7);
        block = realloc(block, tier_sizes[i] * 2);
        CHILD_CHECK(block != NULL && pattern_holds(block, tier_sizes[i], 7));
        free(block);
    }
}

/* Twice, so that fresh and used memory is met. */
static void check_filling(unsigned char byte, unsigned char complement)
{
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < COUNT_OF(tier_sizes); i++) {
            size_t size = tier_sizes[i];
            void *block = malloc(size);
            CHILD_CHECK(block && is_filled(block, size, complement));
            void *zeroed = calloc(1, size);
            CHILD_CHECK(zeroed && is_zero(zeroed, size));
            void *aligned = memalign(256, size);
            CHILD_CHECK(aligned && is_filled(aligned, size, complement));
            memset(aligned, byte ^ 0x55, size);
            aligned = realloc(aligned, size / 2 + 1);
            CHILD_CHECK(aligned && is_filled(aligned, size / 2 + 1, byte ^ 0x55));
            free(aligned);
            free(zeroed);
            free(block);
        }
    }
}

/* The block is read after free: that is what the parameter is for. Its first word is ours. */
static void check_freed(size_t size, unsigned char byte)
{
    static unsigned char *volatile freed;
    freed = malloc(size);
    void *guard = malloc(size);
    CHILD_CHECK(freed && guard);
    memset(freed, 0x11, size);
    free(freed);
    CHILD_CHECK(is_filled(freed + sizeof(void *), size - sizeof(void *), byte));
    free(guard);
}

/* behaviour 22: M_PERTURB fills what malloc hands out, and what is freed. */
static void perturb_fills(void)
{
    for (size_t i = 0; i < COUNT_OF(tier_sizes); i++) {
        free(malloc(tier_sizes[i]));
    }
    CHILD_CHECK(mallopt(M_PERTURB, 0xa5) == 1);
    check_filling(0xa5, 0x5a);
    static const size_t sizes[] = {24, 1000, 5000, 40000, 300000};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        check_freed(sizes[i], 0xa5);
    }
    CHILD_CHECK(mallopt(M_PERTURB, 0xff) == 1);
    check_filling(0xff, 0x00);
    CHILD_CHECK(mallopt(M_PERTURB, 0x100) == 1);
    check_filling(0x00, 0xff);
}

static void *check_filling_in_thread(void *unused)
{
    check_filling(0xa5, 0x5a);
    return unused;
}

/* behaviour 22: new threads, and children, know it from their first call on. */
static void perturb_fills_in_threads(void)
{
    pthread_t thread;
    CHILD_CHECK(mallopt(M_PERTURB, 0xa5) == 1);
    CHILD_CHECK(pthread_create(&thread, NULL, check_filling_in_thread, NULL) == 0);
    check_filling(0xa5, 0x5a);
    CHILD_CHECK(pthread_join(thread, NULL) == 0);
    pid_t child = fork();
    if (child == 0) {
        check_filling(0xa5, 0x5a);
        _exit(0);
    }
    int status;
    CHILD_CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* The least of some tries: what else the machine does makes each longer. */
static double pairs_ns(void)
{
    enum { TRIES = 10, PAIRS = 100000 };
    double least = 1e9;
    for (int tries = 0; tries < TRIES; tries++) {
        struct timespec start, end;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
        for (unsigned i = 0; i < PAIRS; i++) {
            void *block = malloc(100);
            CHILD_CHECK(block != NULL);
            free(block);
        }
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
        double ns =
            ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) /
            PAIRS;
        least = ns < least ? ns : least;
    }
    return least;
}

/* behaviour 22: it can be turned off again, and then costs nothing. */
static void perturb_ends(void)
{
    double before = pairs_ns();
    CHILD_CHECK(mallopt(M_PERTURB, 0xa5) == 1);
    CHILD_CHECK(pairs_ns() > before * 2);
    CHILD_CHECK(mallopt(M_PERTURB, 0) == 1);
    CHILD_CHECK(pairs_ns() <= before * 2);
    unsigned char *block = malloc(24);
    CHILD_CHECK(block != NULL);
    memset(block, 3, 24);
    free(block);
    block = malloc(24);
    CHILD_CHECK(block != NULL && block[16] == 3);
    free(block);
}

/* 64 MiB come and go; then more than a second with some calls, which give memory back. What
 * is left of them. */
static size_t left_after_peak(size_t size)
{
    enum { PEAK = 64 * 1024 * 1024 };
    size_t count = PEAK / size;
    void **blocks = malloc(count * sizeof(void *));
    CHILD_CHECK(blocks != NULL);
    size_t before = resident_bytes();
    for (size_t i = 0; i < count; i++) {
        blocks[i] = malloc(size);
        CHILD_CHECK(blocks[i] != NULL);
        memset(blocks[i], 1, size);
    }
    for (size_t i = 0; i < count; i++) {
        free(blocks[i]);
    }
    for (int i = 0; i < 150; i++) {
        const struct timespec nap = {.tv_nsec = 10000000};
        nanosleep(&nap, NULL);
        for (size_t k = 0; k < 20; k++) {
            free(malloc(100 + 200 * k));
        }
    }
    size_t after = resident_bytes();
    free(blocks);
    return after > before ? after - before : 0;
}

/* behaviour 22: M_TRIM_THRESHOLD of -1 keeps what is free, until malloc_trim. */
static void trim_threshold_keeps(void)
{
    static const size_t sizes[] = {1000, 20000, 200000, 4 * MIB};
    CHILD_CHECK(mallopt(M_TRIM_THRESHOLD, -1) == 1);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        malloc_trim(0);
        CHILD_CHECK(left_after_peak(sizes[i]) >= 56 * MIB);
    }
    size_t before = resident_bytes();
    CHILD_CHECK(malloc_trim(0) == 1);
    CHILD_CHECK(resident_bytes() + 50 * MIB <= before);
}

/* behaviour 22: what is free beyond it goes. */
static void trim_threshold_trims(void)
{
    CHILD_CHECK(mallopt(M_TRIM_THRESHOLD, 16 * MIB) == 1);
    for (size_t size = 200000; size <= 4 * MIB; size *= 20) {
        malloc_trim(0);
        size_t left = left_after_peak(size);
        CHILD_CHECK(left >= 8 * MIB && left <= 20 * MIB);
    }
    CHILD_CHECK(mallopt(M_TRIM_THRESHOLD, 0) == 1);
    CHILD_CHECK(left_after_peak(200000) <= 2 * MIB);
}

static void (*bodies[])(void) = {
    known_parameters_are_accepted, hints_change_nothing, perturb_fills,
    perturb_fills_in_threads,      perturb_ends,         trim_threshold_keeps,
    trim_threshold_trims,
};

static void test_body(void **state)
{
    run_in_child(*(void (**)(void)) * state);
}

#define TEST(index, name)                                                                          \
    {                                                                                              \
        name, test_body, NULL, NULL, &bodies[index]                                                \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(0, "known_parameters_are_accepted"),
        TEST(1, "hints_change_nothing"),
        TEST(2, "perturb_fills"),
        TEST(3, "perturb_fills_in_threads"),
        TEST(4, "perturb_ends"),
        TEST(5, "trim_threshold_keeps"),
        TEST(6, "trim_threshold_trims"),
    };
    return library_is_linked() || cmocka_run_group_tests(tests, NULL, NULL);
}
