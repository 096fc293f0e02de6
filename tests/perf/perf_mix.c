/* A random mix of malloc and free over a fixed number of live blocks of 16 to 1024 bytes.
 *
 * Knows nothing of any allocator: the runners preload one. After warming up it calls getppid()
 * before and after the timed part, so that a system call tracer sees where that part is.
 *
 * usage: perf_mix OPERATIONS
 * Prints mallocs=N frees=N nanoseconds=N; the first two count the whole run, the last the timed
 * part of OPERATIONS calls.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define LIVE 400
#define SMALLEST 16
#define LARGEST 1024
#define WARM_UP_PAIRS 500000

static unsigned char *slots[LIVE];

static int64_t nanoseconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Replaces `pairs` random blocks and returns the state of the generator. The program's own share
 * of the time must be small: one multiplication for the next number, two to scale it. */
static uint64_t replace_blocks(uint64_t pairs, uint64_t state)
{
    for (uint64_t i = 0; i < pairs; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        size_t at = (size_t)(((state >> 32 & 0xffff) * LIVE) >> 16);
        size_t size = SMALLEST + (size_t)(((state >> 48) * (LARGEST - SMALLEST + 1)) >> 16);
        free(slots[at]);
        unsigned char *block = malloc(size);
        block[0] = (unsigned char)i;
        slots[at] = block;
    }
    return state;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: perf_mix OPERATIONS\n");
        return 2;
    }
    uint64_t pairs = strtoull(argv[1], NULL, 10) / 2;
    for (size_t at = 0; at < LIVE; at++) {
        slots[at] = malloc(SMALLEST + at);
    }
    uint64_t state = replace_blocks(WARM_UP_PAIRS, 1);
    (void)getppid();
    int64_t start = nanoseconds_now();
    (void)replace_blocks(pairs, state);
    int64_t end = nanoseconds_now();
    (void)getppid();
    for (size_t at = 0; at < LIVE; at++) {
        free(slots[at]);
    }
    uint64_t calls = LIVE + WARM_UP_PAIRS + pairs;
    printf(
        "mallocs=%" PRIu64 " frees=%" PRIu64 " nanoseconds=%" PRId64 "\n", calls, calls,
        end - start);
    return 0;
}
