/* Samples of blocks in scopes, of which each is one: the live profile knows what lives, and no end
 * of a block is missed. */
#include "scope_support.h"

#include <cmocka.h>
#include <pthread.h>
#include <sys/wait.h>

/* Live blocks and bytes of all samples. */
static void check_profile(size_t blocks, size_t bytes)
{
    char path[64], head[256] = "";
    unsigned long live_blocks = 0, live_bytes = 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", memfd_create("profile", 0));
    CHECK(hakmem_profile_write(path) == 0);
    int file = atoi(strrchr(path, '/') + 1);
    CHECK(pread(file, head, sizeof head - 1, 0) > 0 && close(file) == 0);
    CHECK(sscanf(head, "heap profile: %lu: %lu", &live_blocks, &live_bytes) == 2);
    if (live_blocks != blocks || live_bytes != bytes)
        fprintf(stderr, "%lu blocks, %lu bytes\n", live_blocks, live_bytes);
    CHECK(live_blocks == blocks && live_bytes == bytes);
}

static int sample_all(void **state)
{
    (void)state;
    return hakmem_option_set("sample_kib", -1);
}

static int sample_none(void **state)
{
    (void)state;
    return hakmem_option_set("sample_kib", 0);
}

static void *free_in_thread(void *block)
{
    free(block);
    return NULL;
}

static void each_end_counts(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 100, 5000, 100000, MIB, 3 * MIB};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    char *blocks[3 * SIZES];
    pthread_t thread;
    struct hakmem_scope *scope = make_scope("samples", 0);
    CHECK(hakmem_scope_enter(scope) == 0);
    size_t sum = 0;
    for (size_t i = 0; i < 3 * SIZES; i++) {
        blocks[i] = i % 2 ? calloc(1, sizes[i / 3]) : malloc(sizes[i / 3]);
        CHECK(blocks[i] && (i % 2 == 0 || !blocks[i][sizes[i / 3] - 1]));
        memset(blocks[i], 1, sizes[i / 3]);
        sum += sizes[i / 3];
    }
    check_profile(3 * SIZES, sum);
    CHECK(usage_of(scope).live_blocks == 3 * SIZES);
    /* In place, and elsewhere. */
    blocks[3] = realloc(blocks[3], 105);
    blocks[4] = realloc(blocks[4], 400);
    sum += 5 + 300;
    check_profile(3 * SIZES, sum);
    for (size_t i = 0; i < 3 * SIZES; i += 3, sum -= sizes[i / 3 - 1] + 5 * (i == 6))
        free(blocks[i]);
    check_profile(2 * SIZES, sum);
    hakmem_scope_leave(scope);
    for (size_t i = 1; i < 3 * SIZES; i += 3) {
        CHECK(pthread_create(&thread, NULL, free_in_thread, blocks[i]) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    hakmem_scope_reset(scope);
    check_profile(0, 0);
    CHECK(hakmem_scope_malloc(scope, 1000) && hakmem_scope_malloc(scope, 3 * MIB));
    hakmem_scope_destroy(scope);
    check_profile(0, 0);
}

/* A thread that has blocks at hand gives each out as a sample as soon as samples are taken, and
 * none of these comes to hand again. */
static void blocks_at_hand_are_samples(void **state)
{
    void *blocks[200];
    struct hakmem_scope *scope = make_scope("stays", 0);
    sample_none(state);
    CHECK(hakmem_scope_enter(scope) == 0);
    for (int i = 0; i < 200; i++)
        free(malloc(100));
    sample_all(state);
    for (int i = 0; i < 200; i++)
        blocks[i] = malloc(100);
    check_profile(200, 20000);
    sample_none(state);
    void *none = malloc(100);
    for (int i = 0; i < 200; i++)
        free(blocks[i]);
    sample_all(state);
    check_profile(0, 0);
    CHECK(usage_of(scope).live_blocks == 1);
    free(none);
    hakmem_scope_leave(scope);
    hakmem_scope_destroy(scope);
}

/* With the lock held or not, whatever the parent does. */
static void a_child_goes_on(void **state)
{
    (void)state;
    struct hakmem_scope *scope = make_scope("child", 0);
    char *block = hakmem_scope_malloc(scope, 100);
    pid_t child = fork();
    if (child == 0) {
        free(block);
        CHECK(hakmem_scope_malloc(scope, 50));
        check_profile(1, 50);
        _exit(0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    hakmem_scope_destroy(scope);
    check_profile(0, 0);
}

int main(void)
{
    /* What the C library keeps of a thread is no sample then. */
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, free_in_thread, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
#define TEST(test) cmocka_unit_test_setup_teardown(test, sample_all, sample_none)
    const struct CMUnitTest tests[] = {
        TEST(each_end_counts),
        TEST(blocks_at_hand_are_samples),
        TEST(a_child_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
