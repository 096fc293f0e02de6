/* Each call of scopes, and each function of malloc's family inside of one. */
#include "scope_support.h"

#include <cmocka.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct hakmem_scope *scope;

static int set_up(void **state)
{
    (void)state;
    scope = make_scope("test", 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    hakmem_scope_destroy(scope);
    return 0;
}

static void check_live(struct hakmem_scope *of, size_t blocks, size_t bytes)
{
    struct hakmem_scope_figures usage = usage_of(of);
    CHECK(usage.live_blocks == blocks);
    CHECK(usage.live_bytes == bytes);
}

static void await(pid_t child)
{
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void each_function_allocates_inside(void **state)
{
    (void)state;
    void *outside = malloc(100), *blocks[12];
    int count = 0;
    size_t bytes = 0;
    CHECK(hakmem_scope_enter(scope) == 0);
    blocks[count++] = malloc(1);
    blocks[count++] = malloc(100);
    blocks[count++] = malloc(5000);
    blocks[count++] = malloc(200000);
    blocks[count++] = malloc(3 * MIB + 1);
    blocks[count++] = calloc(10, 1000);
    blocks[count++] = realloc(NULL, 64);
    blocks[count++] = aligned_alloc(65536, 100);
    blocks[count++] = memalign(4 * MIB, 100);
    blocks[count++] = strdup("a library's own");
    CHECK(posix_memalign(&blocks[count++], MIB, MIB) == 0);
    blocks[count++] = realloc(outside, 50000);
    hakmem_scope_leave(scope);
    for (int i = 0; i < count; i++) {
        CHECK(blocks[i]);
        bytes += malloc_usable_size(blocks[i]);
    }
    check_live(scope, (size_t)count, bytes);
    CHECK((uintptr_t)blocks[7] % 65536 == 0 && (uintptr_t)blocks[8] % (4 * MIB) == 0);
    CHECK((uintptr_t)blocks[10] % MIB == 0);
    void *not_inside = malloc(100);
    check_live(scope, (size_t)count, bytes);
    free(not_inside);
    for (int i = 0; i < count; i++)
        free(blocks[i]);
    check_live(scope, 0, 0);
}

/* What was used before and is free is cleared, and what was never used costs no page. */
static void calloc_clears(void **state)
{
    (void)state;
    static const size_t sizes[] = {16, 1000, 4096, 5000, 100000, MIB, 3 * MIB};
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            CHECK(hakmem_scope_enter(scope) == 0);
            unsigned char *block = calloc(1, sizes[i]), *other = malloc(sizes[i]);
            hakmem_scope_leave(scope);
            for (size_t at = 0; at < sizes[i]; at++)
                CHECK(block[at] == 0);
            memset(block, 0xff, sizes[i]);
            memset(other, 0xff, sizes[i]);
            free(round == 1 ? other : block);
            free(round == 1 ? block : other);
        }
    check_live(scope, 0, 0);
    size_t before = usage_of(scope).resident_bytes;
    CHECK(hakmem_scope_enter(scope) == 0);
    void *large = calloc(1, 64 * MIB);
    hakmem_scope_leave(scope);
    CHECK(usage_of(scope).resident_bytes == before);
    free(large);
}

static void blocks_keep_their_contents_in_realloc(void **state)
{
    (void)state;
    CHECK(hakmem_scope_enter(scope) == 0);
    unsigned char *block = NULL;
    size_t before = 0;
    static const size_t sizes[] = {1, 20, 3000, 2000, 70000, 5 * MIB, 6 * MIB, 300000, 10};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        block = realloc(block, sizes[i]);
        for (size_t at = 0; at < before && at < sizes[i]; at++)
            CHECK(block[at] == (unsigned char)(at * 7));
        for (size_t at = 0; at < sizes[i]; at++)
            block[at] = (unsigned char)(at * 7);
        before = sizes[i];
        check_live(scope, 1, malloc_usable_size(block));
    }
    CHECK(realloc(block, 0) == NULL);
    hakmem_scope_leave(scope);
    check_live(scope, 0, 0);
}

/* A scope keeps one empty piece of 2 MiB, so that a block beside full ones does not map and unmap
 * one each time. */
static void an_empty_piece_stays(void **state)
{
    (void)state;
    char *full = hakmem_scope_malloc(scope, 2 * MIB);
    char *block = hakmem_scope_malloc(scope, MIB), *other = hakmem_scope_malloc(scope, 2 * MIB);
    memset(block, 1, MIB), memset(other, 1, 2 * MIB);
    free(block);
    size_t before = usage_of(scope).resident_bytes;
    free(other);
    CHECK(usage_of(scope).resident_bytes + 2 * MIB == before);
    char *again = hakmem_scope_malloc(scope, MIB);
    CHECK(again == block);
    free(again);
    free(full);
    check_live(scope, 0, 0);
}

static void *free_all(void *blocks)
{
    void **block = blocks;
    for (int i = 0; i < 1000; i++)
        free(block[i]);
    return NULL;
}

static void another_thread_frees(void **state)
{
    (void)state;
    static void *blocks[1000];
    for (int i = 0; i < 1000; i++)
        blocks[i] = hakmem_scope_malloc(scope, (size_t)i * 7);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, free_all, blocks) == 0);
    pthread_join(thread, NULL);
    check_live(scope, 0, 0);
}

static void *ends_inside(void *unused)
{
    CHECK(hakmem_scope_enter(scope) == 0);
    CHECK(hakmem_scope_enter(NULL) == 0);
    CHECK(hakmem_scope_enter(scope) == 0);
    for (int i = 0; i < 200; i++)
        free(malloc(100));
    return unused;
}

static void a_thread_may_end_inside(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, ends_inside, NULL) == 0);
        pthread_join(thread, NULL);
    }
}

static void entries_are_a_stack(void **state)
{
    (void)state;
    struct hakmem_scope *other = make_scope("other", 0);
    CHECK(hakmem_scope_enter(scope) == 0);
    CHECK(hakmem_scope_enter(other) == 0);
    void *in_other = malloc(10);
    CHECK(hakmem_scope_enter(NULL) == 0);
    void *in_none = malloc(10);
    void *more = malloc(10);
    hakmem_scope_leave(NULL);
    void *again = malloc(10);
    hakmem_scope_leave(other);
    void *in_scope = malloc(10);
    hakmem_scope_leave(scope);
    check_live(other, 2, 32);
    check_live(scope, 1, 16);
    free(in_other), free(in_none), free(more), free(again), free(in_scope);
    hakmem_scope_destroy(other);
}

static void inner_scopes_count_in_both(void **state)
{
    (void)state;
    CHECK(hakmem_scope_enter(scope) == 0);
    struct hakmem_scope *inner = make_scope("inner", 0);
    hakmem_scope_leave(scope);
    void *one = hakmem_scope_malloc(inner, 100), *two = hakmem_scope_malloc(scope, 100);
    check_live(inner, 1, 112);
    check_live(scope, 2, 224);
    hakmem_scope_reset(inner);
    check_live(inner, 0, 0);
    check_live(scope, 1, 112);
    one = hakmem_scope_malloc(inner, 100);
    free(two);
    check_live(scope, 1, 112);
    hakmem_scope_reset(scope);
    check_live(inner, 0, 0);
    one = hakmem_scope_malloc(inner, 100);
    (void)one;
    hakmem_scope_destroy(inner);
    check_live(scope, 0, 0);
    CHECK(usage_of(scope).resident_bytes == 0);
}

static void a_limit_holds(void **state)
{
    (void)state;
    CHECK(hakmem_scope_enter(scope) == 0);
    struct hakmem_scope *inner = make_scope("inner", 0);
    hakmem_scope_leave(scope);
    hakmem_scope_limit(scope, 1000);
    CHECK(usage_of(scope).limit_bytes == 1000);
    void *block = hakmem_scope_malloc(inner, 512);
    CHECK(block);
    errno = 0;
    CHECK(!hakmem_scope_malloc(inner, 512) && errno == ENOMEM);
    CHECK(!hakmem_scope_malloc(inner, 5 * MIB));
    void *rest = hakmem_scope_malloc(scope, 480);
    CHECK(rest && !hakmem_scope_malloc(scope, 1));
    CHECK(hakmem_scope_enter(inner) == 0);
    CHECK(!realloc(block, 600));
    hakmem_scope_leave(inner);
    check_live(scope, 2, 992);
    free(rest);
    CHECK(hakmem_scope_malloc(inner, 480));
    hakmem_scope_limit(scope, 0);
    CHECK(hakmem_scope_malloc(inner, 5 * MIB));
}

/* A cache that evicts, and says so in calls that are served from no scope. */
static void *cached[4];
static int calls;

static int evict(struct hakmem_scope *full, size_t bytes, void *argument)
{
    CHECK(full == scope && bytes == 1024 && argument == cached);
    calls++;
    free(malloc(100000));
    CHECK(!hakmem_scope_malloc(full, 1024)); /* without a call of this function */
    for (int i = 0; i < 4; i++)
        if (cached[i]) {
            free(cached[i]);
            cached[i] = NULL;
            return 1;
        }
    return 0;
}

static void the_callback_makes_room(void **state)
{
    (void)state;
    hakmem_scope_destroy(scope);
    scope = hakmem_scope_create("cache", 4096, evict, cached);
    CHECK(hakmem_scope_enter(scope) == 0);
    for (int i = 0; i < 4; i++)
        CHECK((cached[i] = malloc(1024)) != NULL);
    CHECK(calls == 0);
    void *blocks[5];
    for (int i = 0; i < 5; i++)
        blocks[i] = malloc(1024);
    hakmem_scope_leave(scope);
    CHECK(blocks[3] && !blocks[4] && calls == 5);
    check_live(scope, 4, 4096);
    void *outside = malloc(10);
    check_live(scope, 4, 4096);
    free(outside);
}

static void a_reset_gives_all_back(void **state)
{
    (void)state;
    CHECK(hakmem_scope_enter(scope) == 0);
    for (int i = 0; i < 20000; i++)
        memset(malloc(1000), 1, 1000);
    memset(malloc(10 * MIB), 1, 10 * MIB);
    hakmem_scope_leave(scope);
    CHECK(usage_of(scope).resident_bytes >= 30000000);
    hakmem_scope_reset(scope);
    check_live(scope, 0, 0);
    CHECK(usage_of(scope).resident_bytes == 0);
    void *block = hakmem_scope_malloc(scope, 100);
    memset(block, 1, 100);
    CHECK(usage_of(scope).resident_bytes == (size_t)sysconf(_SC_PAGESIZE));
}

static void a_child_has_the_scope(void **state)
{
    (void)state;
    void *block = hakmem_scope_malloc(scope, 100);
    CHECK(hakmem_scope_enter(scope) == 0);
    pid_t child = fork();
    if (!child) {
        void *more = malloc(100);
        check_live(scope, 2, 224);
        free(block);
        free(more);
        check_live(scope, 0, 0);
        hakmem_scope_reset(scope);
        hakmem_scope_leave(scope);
        hakmem_scope_destroy(scope);
        _exit(0);
    }
    hakmem_scope_leave(scope);
    await(child);
    check_live(scope, 1, 112);
}

/* Where addresses are limited, a scope that was reset keeps none from others. */
static void addresses_that_are_limited_go(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        unsigned long pages;
        CHECK(fscanf(fopen("/proc/self/statm", "r"), "%lu", &pages) == 1);
        rlim_t most = pages * (rlim_t)sysconf(_SC_PAGESIZE) + 64 * MIB;
        CHECK(setrlimit(RLIMIT_AS, &(struct rlimit){most, most}) == 0);
        while (hakmem_scope_malloc(scope, 50000))
            continue;
        CHECK(usage_of(scope).live_bytes > 20 * MIB);
        hakmem_scope_reset(scope);
        CHECK(hakmem_scope_malloc(NULL, 40 * MIB));
        _exit(0);
    }
    await(child);
}

/* Many in a row, whose records serve again. */
static void scopes_come_and_go(void **state)
{
    (void)state;
    size_t before = 0;
    for (int i = 0; i < 3000; i++) {
        struct hakmem_scope *request = make_scope("request", 0);
        CHECK(hakmem_scope_enter(request) == 0);
        for (int j = 0; j < 20; j++)
            memset(malloc((size_t)j * 100), 1, (size_t)j * 100);
        hakmem_scope_leave(request);
        hakmem_scope_destroy(request);
        if (i == 1000)
            before = resident_now();
    }
    CHECK(resident_now() <= before + MIB);
}

static void sizes_are_known(void **state)
{
    (void)state;
    char *block = hakmem_scope_malloc(scope, 1000), *big = hakmem_scope_malloc(scope, 3 * MIB);
    CHECK(malloc_usable_size(block) == 1024 && hakmem_usable_size(big) == 3 * MIB);
    CHECK(malloc_object_size(block + 1000) == 24 && malloc_object_size(big + 10) == 3 * MIB - 10);
    char *aligned = hakmem_scope_aligned_alloc(scope, 4096, 100);
    CHECK((uintptr_t)aligned % 4096 == 0);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(each_function_allocates_inside),
        TEST(calloc_clears),
        TEST(blocks_keep_their_contents_in_realloc),
        TEST(an_empty_piece_stays),
        TEST(another_thread_frees),
        TEST(addresses_that_are_limited_go),
        TEST(a_thread_may_end_inside),
        TEST(entries_are_a_stack),
        TEST(inner_scopes_count_in_both),
        TEST(a_limit_holds),
        TEST(the_callback_makes_room),
        TEST(a_reset_gives_all_back),
        TEST(a_child_has_the_scope),
        TEST(scopes_come_and_go),
        TEST(sizes_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
