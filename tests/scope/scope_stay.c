/* A thread that stays in a scope keeps free blocks at hand, which nobody sees: each figure is
 * exact, a limit holds at once, and after a reset by another thread none of them is handed out. */
#include "scope_support.h"

#include <malloc.h>
#include <pthread.h>

static void check_live(struct hakmem_scope *of, size_t blocks, size_t bytes)
{
    struct hakmem_scope_figures usage = usage_of(of);
    CHECK(usage.live_blocks == blocks);
    CHECK(usage.live_bytes == bytes);
}

static void *free_all(void *blocks)
{
    void **block = blocks;
    for (int i = 0; i < 1000; i++)
        free(block[i]);
    return NULL;
}

enum { STAYS = 400 };

static void *end_blocks(void *of)
{
    hakmem_scope_reset(of);
    return NULL;
}

static void *bound(void *of)
{
    hakmem_scope_limit(of, 1000);
    return NULL;
}

static void run_thread(void *(*call)(void *), void *argument)
{
    pthread_t thread;
    CHECK(hakmem_scope_enter(NULL) == 0); /* what the C library keeps of threads */
    CHECK(pthread_create(&thread, NULL, call, argument) == 0);
    pthread_join(thread, NULL);
    hakmem_scope_leave(NULL);
}

/* Blocks of the thread, which differ from each other and from those that live. */
static void check_apart(char **blocks)
{
    for (int i = 0; i < STAYS; i++) {
        CHECK((blocks[i] = malloc((size_t)i % 5 * 16 + 1)) != NULL);
        memset(blocks[i], i % 100, malloc_usable_size(blocks[i]));
        *(int *)blocks[i] = i;
    }
    for (int i = 0; i < STAYS; i++)
        CHECK(*(int *)blocks[i] == i && blocks[i][malloc_usable_size(blocks[i]) - 1] == i % 100);
}

/* ---- A limit --------------------------------------------------------------------------------- */

enum { ROOM = 4096 }; /* blocks of the size below */

static struct hakmem_scope *bounded;
static pthread_barrier_t turn;

/* Has blocks at hand when the scope becomes full, and gets none of them then. */
static void *stay_in_full(void *unused)
{
    void *blocks[20];
    CHECK(hakmem_scope_enter(bounded) == 0);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 200; i++)
            free(malloc(1000));
        pthread_barrier_wait(&turn);
        pthread_barrier_wait(&turn);
        CHECK(!malloc(1000));
        pthread_barrier_wait(&turn);
        pthread_barrier_wait(&turn);
        for (int i = 0; i < 20; i++)
            CHECK((blocks[i] = malloc(1000)) != NULL);
        for (int i = 0; i < 20; i++)
            free(blocks[i]);
    }
    hakmem_scope_leave(bounded);
    return unused;
}

/* Blocks at hand, here and there, neither pass the limit nor use it up. */
static void a_limit_is_exact(void)
{
    static void *blocks[ROOM];
    pthread_t thread;
    bounded = make_scope("bounded", ROOM * 1024);
    CHECK(pthread_barrier_init(&turn, NULL, 2) == 0);
    CHECK(pthread_create(&thread, NULL, stay_in_full, NULL) == 0);
    CHECK(hakmem_scope_enter(bounded) == 0);
    for (int round = 0; round < 3; round++) {
        pthread_barrier_wait(&turn);
        for (int i = 0; i < ROOM; i++) {
            CHECK((blocks[i] = malloc(1000)) != NULL);
            if (i % 5 == 0)
                free(malloc(round ? 1 : 1000));
        }
        CHECK(!malloc(1));
        check_live(bounded, ROOM, ROOM * 1024);
        pthread_barrier_wait(&turn);
        pthread_barrier_wait(&turn);
        for (int i = 0; i < ROOM; i++)
            free(blocks[i]);
        pthread_barrier_wait(&turn);
    }
    hakmem_scope_leave(bounded);
    pthread_join(thread, NULL);
    check_live(bounded, 0, 0);
    hakmem_scope_destroy(bounded);
}

/* ---- Blocks of several spans, and of several scopes ------------------------------------------ */

enum { SPREAD = 5000, EACH = 1000 }; /* more than a span has room for */

/* Each block comes back where it belongs, wherever the one before it lay. */
static void spans_take_turns(void)
{
    static char *blocks[2][SPREAD];
    struct hakmem_scope *scopes[2];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2; i++) {
            scopes[i] = make_scope(i ? "second" : "first", 0);
            CHECK(hakmem_scope_enter(scopes[i]) == 0);
            for (size_t j = 0; j < SPREAD; j++)
                CHECK((blocks[i][j] = malloc(EACH)) != NULL);
        }
        /* In the second scope. */
        for (size_t j = 0; j < SPREAD; j++) {
            free(blocks[1][j * 2999 % SPREAD]);
            free(blocks[0][j * 2999 % SPREAD]);
        }
        check_live(scopes[1], 0, 0);
        hakmem_scope_leave(scopes[1]);
        hakmem_scope_leave(scopes[0]);
        check_live(scopes[0], 0, 0);
        hakmem_scope_destroy(scopes[0]);
    }
}

/* ---- Filled blocks --------------------------------------------------------------------------- */

#ifndef SCOPE_INSIDE
/* Blocks at hand do not escape M_PERTURB. */
static void blocks_are_filled(void)
{
    struct hakmem_scope *scope = make_scope("filled", 0);
    CHECK(hakmem_scope_enter(scope) == 0);
    for (int i = 0; i < 400; i++)
        free(malloc(100));
    CHECK(mallopt(M_PERTURB, 0x5a) == 1);
    for (int i = 0; i < 400; i++) {
        unsigned char *block = malloc(100);
        CHECK(block && block[0] == 0xa5 && block[99] == 0xa5);
        memset(block, 1, 100);
        free(block);
        unsigned char *volatile freed = block;
        CHECK(freed[99] == 0x5a);
    }
    CHECK(mallopt(M_PERTURB, 0) == 1);
    hakmem_scope_leave(scope);
    hakmem_scope_destroy(scope);
}
#endif

int main(void)
{
    a_limit_is_exact();
    spans_take_turns();
#ifndef SCOPE_INSIDE
    blocks_are_filled();
#endif
    static char *blocks[STAYS];
    static void *freed[1000];
    struct hakmem_scope *scope = make_scope("outer", 0);
    CHECK(hakmem_scope_enter(scope) == 0);
    struct hakmem_scope *inner = make_scope("inner", 0);
    CHECK(hakmem_scope_enter(inner) == 0);
    size_t bytes = 0;
    for (size_t i = 0; i < STAYS; i++) {
        blocks[i] = malloc(i);
        bytes += malloc_usable_size(blocks[i]);
        check_live(scope, i + 1, bytes);
    }
    for (size_t i = 0; i < STAYS; i++) {
        bytes -= malloc_usable_size(blocks[i]);
        free(blocks[i]);
        check_live(inner, STAYS - i - 1, bytes);
    }
    for (int i = 0; i < 1000; i++)
        freed[i] = malloc(100);
    run_thread(free_all, freed);
    check_live(scope, 0, 0);
    check_apart(blocks);
    run_thread(end_blocks, scope);
    check_live(inner, 0, 0);
    check_apart(blocks);
    for (int i = 0; i < STAYS; i++)
        free(blocks[i]);
    check_live(scope, 0, 0);
    run_thread(bound, scope);
    for (int i = 0; i < 10; i++)
        CHECK((blocks[i] = malloc(100)) == NULL ? i >= 8 : i < 8);
    check_live(scope, 8, 896);
    free(blocks[0]);
    CHECK((blocks[0] = malloc(100)) != NULL && !malloc(100));
    hakmem_scope_limit(scope, 0);
    check_apart(blocks);
    run_thread(end_blocks, inner);
    for (int i = 0; i < 100; i++) {
        CHECK(hakmem_scope_enter(NULL) == 0);
        char *outside = malloc(32);
        hakmem_scope_leave(NULL);
        char *cleared = calloc(1, 32);
        for (int at = 0; at < 32; at++)
            CHECK(!cleared[at]);
        memset(cleared, 1, 32);
        free(outside);
        free(cleared);
    }
    check_live(inner, 0, 0);
    hakmem_scope_leave(inner);
    hakmem_scope_leave(scope);
    check_live(scope, 0, 0);
    hakmem_scope_destroy(scope);
    return 0;
}
