/* Owns the tests of free's two promises: it works before anything else did, and it keeps errno:
 * behaviour 14.
 *
 * The first calls are made from .preinit_array, which the dynamic linker runs before the
 * constructors of any library.
 */
#include "semantics_support.h"

#include <pthread.h>

static bool early_call_kept_errno;

/* behaviour 14: this is the first call into the allocator that the program itself makes. */
static void free_before_everything(int count, char **arguments, char **environment)
{
    (void)count;
    (void)arguments;
    (void)environment;
    errno = ERRNO_MARK;
    free(NULL);
    cfree(NULL);
    early_call_kept_errno = errno == ERRNO_MARK;
}

__attribute__((section(".preinit_array"), used)) static void (*const early_call)(
    int, char **, char **) = free_before_everything;

static void free_null_before_initialisation(void **state)
{
    (void)state;
    assert_true(early_call_kept_errno);
}

static void *free_null_first(void *argument)
{
    (void)argument;
    errno = ERRNO_MARK;
    free(NULL);
    return (void *)(uintptr_t)(errno == ERRNO_MARK);
}

/* behaviour 14 */
static void free_null_is_the_first_call_of_a_thread(void **state)
{
    (void)state;
    pthread_t thread;
    void *kept = NULL;
    assert_int_equal(pthread_create(&thread, NULL, free_null_first, NULL), 0);
    assert_int_equal(pthread_join(thread, &kept), 0);
    assert_non_null(kept);
}

enum { EACH = 40, BLOCKS = 13 * EACH };

/* Fills `blocks` with blocks of every tier, all of them touched. */
static bool allocate_mixture(void **blocks)
{
    static const size_t sizes[BLOCKS / EACH] = {
        0,      24,     500,         1024,    4000,    30000,       50000,
        200000, 900000, 2 * MIB - 1, 2 * MIB, 3 * MIB, 6 * MIB + 1,
    };
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(sizes[i % COUNT_OF(sizes)]);
        if (blocks[i] == NULL) {
            return false;
        }
        memset(blocks[i], 1, sizes[i % COUNT_OF(sizes)]);
    }
    return true;
}

/* Frees all blocks through the different calls; true when none of them touched errno. */
static bool free_mixture(void **blocks)
{
    bool kept = true;
    for (size_t i = 0; i < BLOCKS; i++) {
        errno = i % 5 == 0 ? 0 : ERRNO_MARK;
        int expected = errno;
        if (i % 4 == 1) {
            cfree(blocks[i]);
        } else if (i % 4 == 2) {
            kept = realloc(blocks[i], opaque(0)) == NULL && kept;
        } else {
            free(blocks[i]);
        }
        kept = kept && errno == expected;
    }
    errno = ERRNO_MARK;
    (void)hakmem_purge();
    hakmem_thread_flush();
    return kept && errno == ERRNO_MARK;
}

/* behaviour 14 */
static void free_keeps_errno(void **state)
{
    (void)state;
    static void *blocks[BLOCKS];
    for (unsigned round = 0; round < 3; round++) {
        assert_true(allocate_mixture(blocks));
        assert_true(free_mixture(blocks));
    }
}

static void *free_mixture_elsewhere(void *blocks)
{
    return (void *)(uintptr_t)free_mixture(blocks);
}

/* behaviour 14: remote frees, and the end of the thread that made them. */
static void free_keeps_errno_in_another_thread(void **state)
{
    (void)state;
    static void *blocks[BLOCKS];
    pthread_t thread;
    void *kept = NULL;
    assert_true(allocate_mixture(blocks));
    assert_int_equal(pthread_create(&thread, NULL, free_mixture_elsewhere, blocks), 0);
    assert_int_equal(pthread_join(thread, &kept), 0);
    assert_non_null(kept);
}

/* System calls of the kinds that give memory back, made by the library so far. */
static uint64_t calls_that_give_back(void)
{
    struct hakmem_stats stats;
    hakmem_get_stats(&stats, sizeof(stats));
    return stats.munmap_calls + stats.madvise_calls;
}

static void free_against_a_refusing_kernel(void)
{
    static void *blocks[BLOCKS];
    CHILD_CHECK(allocate_mixture(blocks));
    if (!fail_syscall(SYS_munmap, ENOMEM) || !fail_syscall(SYS_madvise, EINVAL)) {
        _exit(CHILD_SKIPPED);
    }
    uint64_t before = calls_that_give_back();
    CHILD_CHECK(free_mixture(blocks));
    /* The test is empty unless the library met the refusal. */
    CHILD_CHECK(calls_that_give_back() > before);
    CHILD_CHECK(allocate_mixture(blocks));
    CHILD_CHECK(free_mixture(blocks));
}

/* behaviour 14: munmap fails like this when the process has too many mappings. */
static void free_keeps_errno_when_munmap_fails(void **state)
{
    (void)state;
    run_in_child(free_against_a_refusing_kernel);
}

static void free_huge_blocks_against_a_refusing_kernel(void)
{
    enum { HUGE_BLOCKS = 6 };
    void *blocks[HUGE_BLOCKS];
    for (unsigned i = 0; i < HUGE_BLOCKS; i++) {
        blocks[i] = malloc(GIB + i * MIB);
        CHILD_CHECK(blocks[i] != NULL);
        *(char *)blocks[i] = 1;
    }
    if (!fail_syscall(SYS_munmap, ENOMEM)) {
        _exit(CHILD_SKIPPED);
    }
    for (unsigned i = 0; i < HUGE_BLOCKS; i++) {
        errno = ERRNO_MARK;
        free(blocks[i]);
        CHILD_CHECK(errno == ERRNO_MARK);
    }
    void *block = malloc(100 * MIB);
    CHILD_CHECK(block != NULL);
    *(char *)block = 1;
    free(block);
}

/* behaviour 14: blocks that are too big for any cache go straight to munmap. */
static void free_keeps_errno_when_munmap_of_a_huge_block_fails(void **state)
{
    (void)state;
    run_in_child(free_huge_blocks_against_a_refusing_kernel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_null_before_initialisation),
        cmocka_unit_test(free_null_is_the_first_call_of_a_thread),
        cmocka_unit_test(free_keeps_errno),
        cmocka_unit_test(free_keeps_errno_in_another_thread),
        cmocka_unit_test(free_keeps_errno_when_munmap_fails),
        cmocka_unit_test(free_keeps_errno_when_munmap_of_a_huge_block_fails),
    };
    return library_is_linked() || cmocka_run_group_tests(tests, NULL, NULL);
}
