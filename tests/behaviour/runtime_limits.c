/* A threaded program to be run with little address space or strict overcommit accounting: what
 * cannot be had is refused with ENOMEM, everything else works, and so does everything after
 * (behaviours 37 and 38). Prints "done".
 *
 * usage: runtime_limits limited|overcommit
 */
#include "runtime_support.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#define THREADS 6
#define MIB ((size_t)1 << 20)

static void *thread_main(void *argument)
{
    uint32_t seed = (uint32_t)(uintptr_t)argument + 1;
    void *slots[100] = {NULL};
    size_t sizes[100];
    for (unsigned round = 0; round < 20000; round++) {
        unsigned at = random_next(&seed) % 100;
        if (slots[at] != NULL) {
            REQUIRE(pattern_holds(slots[at], sizes[at], at));
            free(slots[at]);
        }
        sizes[at] = random_size(&seed) % 20000;
        slots[at] = malloc(sizes[at]);
        REQUIRE(slots[at] != NULL);
        pattern_fill(slots[at], sizes[at], at);
    }
    for (unsigned at = 0; at < 100; at++) {
        free(slots[at]);
    }
    return NULL;
}

static void use_threads(void)
{
    pthread_t threads[THREADS];
    pthread_attr_t attributes;
    REQUIRE(pthread_attr_init(&attributes) == 0);
    REQUIRE(pthread_attr_setstacksize(&attributes, MIB) == 0);
    for (uintptr_t i = 0; i < THREADS; i++) {
        REQUIRE(pthread_create(&threads[i], &attributes, thread_main, (void *)i) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    pthread_attr_destroy(&attributes);
}

/* Takes blocks of `size` until refused; returns how many, all freed again. */
static size_t take_all(size_t size)
{
    void *list = NULL;
    size_t count = 0;
    for (;;) {
        errno = 0;
        void **block = malloc(size);
        if (block == NULL) {
            REQUIRE(errno == ENOMEM);
            break;
        }
        *block = list;
        list = block;
        count++;
    }
    while (list != NULL) {
        void *next = *(void **)list;
        free(list);
        list = next;
    }
    return count;
}

/* 256 MiB of address space: most of it must be usable, whatever the size of the blocks, and what
 * was used for one size must be usable for the next. */
static void exhaust_address_space(void)
{
    const size_t sizes[] = {64, 1000, 8000, 30000, 200000, MIB, 3 * MIB, 20 * MIB};
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            size_t got = take_all(sizes[i]) * sizes[i];
            if (got < 120 * MIB) {
                fprintf(
                    stderr, "only %zu MiB in blocks of %zu (round %u)\n", got / MIB, sizes[i],
                    round);
                exit(1);
            }
        }
    }
}

static void ask_for_too_much(void)
{
    errno = 0;
    REQUIRE(malloc((size_t)1 << 44) == NULL && errno == ENOMEM);
    errno = 0;
    REQUIRE(calloc((size_t)1 << 22, (size_t)1 << 22) == NULL && errno == ENOMEM);
    char *block = malloc(100 * MIB);
    REQUIRE(block != NULL);
    pattern_fill(block, 100 * MIB, 4);
    errno = 0;
    REQUIRE(realloc(block, (size_t)1 << 44) == NULL && errno == ENOMEM);
    REQUIRE(pattern_holds(block, 100 * MIB, 4));
    free(block);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        say("usage: runtime_limits limited|overcommit\n");
        return 2;
    }
    watchdog(40, "limited memory");
    use_threads();
    if (strcmp(argv[1], "limited") == 0) {
        exhaust_address_space();
    }
    ask_for_too_much();
    use_threads();
    puts("done");
    return 0;
}
