/* Pairs of malloc and free in last-in-first-out order, for counting instructions.
 *
 * usage: perf_pairs fixed|mixed PAIRS: all of 64 bytes, or of 16 to 1024 bytes by a table
 * Writes to each block, as programs do. Prints mallocs=N frees=N.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH 8
#define TABLE 1024
#define FIXED_SIZE 64
#define SMALLEST 16
#define LARGEST 1024

static size_t sizes[TABLE];

static void fill_table(int mixed)
{
    uint32_t state = 12345;
    for (size_t i = 0; i < TABLE; i++) {
        state = state * 1664525u + 1013904223u;
        sizes[i] = mixed ? SMALLEST + (state >> 16) % (LARGEST - SMALLEST + 1) : FIXED_SIZE;
    }
}

static void run_pairs(unsigned long pairs)
{
    void *stack[DEPTH];
    for (unsigned long done = 0; done < pairs; done += DEPTH) {
        for (unsigned i = 0; i < DEPTH; i++) {
            stack[i] = malloc(sizes[(done + i) % TABLE]);
            *(unsigned *)stack[i] = i;
        }
        for (unsigned i = DEPTH; i > 0; i--) {
            free(stack[i - 1]);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: perf_pairs fixed|mixed PAIRS\n");
        return 2;
    }
    unsigned long pairs = strtoul(argv[2], NULL, 10) / DEPTH * DEPTH;
    fill_table(strcmp(argv[1], "mixed") == 0);
    run_pairs(pairs);
    printf("mallocs=%lu frees=%lu\n", pairs, pairs);
    return 0;
}
