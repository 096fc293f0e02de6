/* The smallest program that shows that the static library or the override object serves a
 * statically linked program, with threads and fork (behaviour 30). Built in several ways.
 */
#include "runtime_support.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

#include <hakmem/hakmem.h>

#define CALLS 20000u

static void *thread_main(void *argument)
{
    uint32_t seed = (uint32_t)(uintptr_t)argument;
    for (unsigned i = 0; i < CALLS; i++) {
        size_t size = random_size(&seed) % 30000;
        void *block = malloc(size);
        REQUIRE(block != NULL);
        pattern_fill(block, size, i);
        REQUIRE(pattern_holds(block, size, i));
        free(block);
    }
    return NULL;
}

/* The C library's own allocations must come from here as well. */
static void check_libc_uses_it(void)
{
    char *line = NULL;
    size_t capacity = 0;
    FILE *file = fopen("/proc/self/status", "r");
    REQUIRE(file != NULL);
    REQUIRE(getline(&line, &capacity, file) > 0);
    REQUIRE(hakmem_usable_size(line) >= capacity);
    REQUIRE(malloc_usable_size(line) == hakmem_usable_size(line));
    fclose(file);
    free(line);
    char *copy = strdup("duplicate");
    REQUIRE(hakmem_usable_size(copy) >= 10);
    free(copy);
}

/* The helper needs nothing of the C library's threads. */
static void check_helper(void)
{
    enum { BLOCKS = 50000, BLOCK = 700 };
    static void *blocks[BLOCKS];
    REQUIRE(hakmem_option_set("background", 1) == 0);
    REQUIRE(hakmem_option_set("purge_delay_ms", 10) == 0);
    long before = resident_kib();
    for (unsigned i = 0; i < BLOCKS; i++) {
        REQUIRE((blocks[i] = malloc(BLOCK)) != NULL);
        memset(blocks[i], 1, BLOCK);
    }
    long peak = resident_kib() - before;
    for (unsigned i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    const struct timespec nap = {0, 10000000};
    for (unsigned i = 0; i < 2000 && resident_kib() - before > peak / 4; i++)
        nanosleep(&nap, NULL);
    REQUIRE(resident_kib() - before <= peak / 4);
    REQUIRE(hakmem_option_set("background", 0) == 0);
}

int main(void)
{
    REQUIRE(strcmp(hakmem_version(), HAKMEM_VERSION) == 0);
    watchdog(HANG_SECONDS, "static program");
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, thread_main, (void *)(i + 1)) == 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    check_libc_uses_it();
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        thread_main((void *)(uintptr_t)9);
        exit(0);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    if (prctl(PR_GET_SECCOMP) == 0) /* else there is none */
        check_helper();
    struct hakmem_stats stats;
    hakmem_get_stats(&stats, sizeof stats);
    REQUIRE(stats.malloc_calls >= 4 * CALLS);
    REQUIRE(stats.libc_calls == 0);
    return 0;
}
