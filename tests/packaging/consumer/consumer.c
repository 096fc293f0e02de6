/* consumer: a program as a user of the installed package would write it. Exits with 0 only when
 * hakmem serves its own calls, those that the C library makes for it, and those of another thread
 * and of a forked child. */
#include <hakmem/hakmem.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 2000 };

static void *blocks[BLOCKS];

static uint64_t calls_so_far(void)
{
    struct hakmem_stats stats;
    hakmem_get_stats(&stats, sizeof(stats));
    return stats.malloc_calls;
}

static void *allocate_blocks(void *unused)
{
    (void)unused;
    for (size_t i = 0; i < BLOCKS; i++) {
        size_t size = 1 + i * 97 % 5000;
        blocks[i] = i % 3 ? malloc(size) : calloc(1, size);
        if (!blocks[i])
            abort();
        memset(blocks[i], (int)i, size);
    }
    return NULL;
}

static void free_blocks(void)
{
    for (size_t i = 0; i < BLOCKS; i++)
        free(blocks[i]);
}

static int check(int holds, const char *what)
{
    if (!holds)
        fprintf(stderr, "consumer: not so: %s\n", what);
    return holds ? 0 : 1;
}

int main(void)
{
    int failures = check(strcmp(hakmem_version(), HAKMEM_VERSION) == 0, "header fits library");

    uint64_t before = calls_so_far();
    allocate_blocks(NULL);
    failures += check(calls_so_far() >= before + BLOCKS, "hakmem serves malloc");
    free_blocks();

    pthread_t thread;
    before = calls_so_far();
    failures += check(pthread_create(&thread, NULL, allocate_blocks, NULL) == 0, "thread starts");
    pthread_join(thread, NULL);
    failures += check(calls_so_far() >= before + BLOCKS, "hakmem serves a thread");
    free_blocks();

    /* hakmem_usable_size() aborts for a block of another allocator. */
    char *copy = strdup("made inside the C library");
    failures += check(hakmem_usable_size(copy) >= 26, "hakmem serves the C library");
    free(copy);

    pid_t child = fork();
    if (child == 0) {
        allocate_blocks(NULL);
        free_blocks();
        _exit(0);
    }
    int status = -1;
    failures += check(child > 0 && waitpid(child, &status, 0) == child, "fork");
    failures += check(status == 0, "the child allocates");

    puts(failures ? "consumer: FAILED" : "consumer: ok");
    return failures ? 1 : 0;
}
