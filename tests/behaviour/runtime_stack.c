/* How much of the caller's stack calls take: coroutines have little.
 *
 * usage: runtime_stack    with HAKMEM_LIMIT_MIB also what looks after a limit
 * Each part runs on a stack of its own, which was filled before; what it has changed was used.
 */
#include "runtime_support.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <ucontext.h>

enum { STACK_BYTES = 256 << 10, USED_MAX = 3 << 10, BLOCKS = 3000, SITTERS = 24, TINY = 6000 };

static ucontext_t caller, coroutine;
static unsigned char *stack;
static uint64_t state = 88172645463325252u;
static void *blocks[BLOCKS];

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* From 1 byte to 8 MiB, short ones as often as long ones. */
static size_t any_size(void)
{
    return (next_random() & (((size_t)1 << next_random() % 24) - 1)) + 1;
}

static void first_call(void)
{
    free(malloc(100));
}

static void replace(void **place)
{
    switch (next_random() % 4) {
    case 0:
        *place = realloc(*place, any_size());
        return;
    case 1:
        free(*place);
        *place = calloc(1, any_size());
        return;
    case 2:
        free(*place);
        if (posix_memalign(place, (size_t)16 << next_random() % 10, any_size()) != 0)
            *place = NULL;
        return;
    default:
        free(*place);
        *place = malloc(any_size());
        if (*place)
            *(char *)*place = 1;
    }
}

/* For longer than from one look at a limit to the next, and some ticks of the purge. */
static void all_calls(void)
{
    double end = seconds_now() + 2.5;
    while (seconds_now() < end)
        for (unsigned i = 0; i < 256; i++)
            replace(&blocks[next_random() % BLOCKS]);
    malloc_trim(0);
    for (unsigned i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
        blocks[i] = NULL;
    }
    malloc_trim(0);
}

static void measure(const char *what, void (*function)(void))
{
    memset(stack, 0xa5, STACK_BYTES);
    REQUIRE(getcontext(&coroutine) == 0);
    coroutine.uc_stack.ss_sp = stack;
    coroutine.uc_stack.ss_size = STACK_BYTES;
    coroutine.uc_link = &caller;
    makecontext(&coroutine, function, 0);
    REQUIRE(swapcontext(&caller, &coroutine) == 0);
    size_t unused = 0;
    while (stack[unused] == 0xa5)
        unused++;
    char line[100];
    int length = snprintf(line, sizeof line, "%s: %zu bytes\n", what, STACK_BYTES - unused);
    REQUIRE(write(STDOUT_FILENO, line, (size_t)length) == length);
    REQUIRE(STACK_BYTES - unused <= USED_MAX);
}

static void *thread(void *unused)
{
    measure("the first call of a thread", first_call);
    measure("all calls of a second thread", all_calls);
    return unused;
}

static pthread_barrier_t all_sit;

/* Frees many tiny blocks, and stays: calls of others drain the caches of idle threads. */
static void *sit(void *unused)
{
    static __thread void *tiny[TINY];
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < TINY; i++)
            memset(tiny[i] = malloc(8 + (size_t)i * 37 % 1016), 1, 8);
        for (int i = 0; i < TINY; i++)
            free(tiny[i]);
    }
    pthread_barrier_wait(&all_sit);
    pause();
    return unused;
}

int main(void)
{
    pthread_t second, sitter;
    REQUIRE(pthread_barrier_init(&all_sit, NULL, SITTERS + 1) == 0);
    stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(stack != MAP_FAILED);
    measure("the first call", first_call);
    for (int i = 0; i < SITTERS; i++)
        REQUIRE(pthread_create(&sitter, NULL, sit, NULL) == 0);
    pthread_barrier_wait(&all_sit);
    measure("all calls", all_calls);
    REQUIRE(pthread_create(&second, NULL, thread, NULL) == 0);
    REQUIRE(pthread_join(second, NULL) == 0);
    return 0;
}
