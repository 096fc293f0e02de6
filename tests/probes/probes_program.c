/* probes_program maps | samples: says that it runs, waits for a line, does what the probes tell of,
 * says how much there is to be told, and waits for another line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hakmem/hakmem.h"

static void await_line(void)
{
    char c;
    while (read(0, &c, 1) == 1 && c != '\n')
        continue;
}

/* To a pipe, without a buffer that would be allocated. */
static void say(const char *line)
{
    if (write(1, line, strlen(line)) < 0)
        _exit(1);
}

/* How often address space came and went, and that one call failed. */
static void map_and_unmap(void)
{
    enum { BLOCKS = 20 };
    static const size_t big = (size_t)5 << 20;
    void *volatile blocks[BLOCKS];
    struct hakmem_stats before, after;
    char line[100];
    hakmem_get_stats(&before, sizeof before);
    for (int i = 0; i < BLOCKS; i++)
        memset(blocks[i] = malloc(big), i, big);
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    hakmem_purge();
    blocks[0] = malloc((size_t)1 << 60);
    hakmem_get_stats(&after, sizeof after);
    snprintf(
        line, sizeof line, "mmap %d munmap %d oom 1 blocks %d\n",
        (int)(after.mmap_calls - before.mmap_calls),
        (int)(after.munmap_calls - before.munmap_calls), BLOCKS);
    say(line);
}

/* Blocks of all tiers that come and go, some in turns with one that stays a while; all go in the
 * end. Says how many bytes were asked for. */
static void allocate_and_free(void)
{
    enum { LIVE = 300, ROUNDS = 40000 };
    static const size_t sizes[] = {40, 700, 3000, 20000, 130000};
    static void *volatile live[LIVE];
    unsigned long long bytes = 0;
    char line[100];
    for (int i = 0; i < ROUNDS; i++) {
        size_t size = i % 400 == 0 ? (size_t)3 << 20 : sizes[i % 5];
        void *volatile pair = malloc(size);
        free(pair);
        free(live[i % LIVE]);
        live[i % LIVE] = malloc(size);
        bytes += 2 * size;
    }
    for (int i = 0; i < LIVE; i++)
        free(live[i]);
    snprintf(line, sizeof line, "bytes %llu\n", bytes);
    say(line);
}

int main(int count, char **arguments)
{
    int samples = count > 1 && strcmp(arguments[1], "samples") == 0;
    say("ready\n");
    await_line();
    if (samples)
        allocate_and_free();
    else
        map_and_unmap();
    await_line();
    return 0;
}
