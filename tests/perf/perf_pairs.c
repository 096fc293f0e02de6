/* Pairs of malloc and free in last-in-first-out order, for counting instructions.
 *
 * usage: perf_pairs KIND PAIRS
 *     fixed      all of 64 bytes
 *     mixed      of 16 to 1024 bytes by a table
 *     unwritten  the same, but the first word is never written, so that the mark of a freed block
 *                stays there; freed in the order of malloc
 *     appended   blocks that grow by realloc, 10 bytes a step, of which the same holds
 *     null       frees of NULL, and nothing else
 *     scoped     as mixed, in a scope of hakmem
 * All others write to each block, as programs do. Prints mallocs=N frees=N, of the last two kinds
 * the number of calls.
 */
#include <dlfcn.h>
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

static void run_unwritten(unsigned long pairs)
{
    static char *ring[64];
    for (unsigned long done = 0; done < pairs; done++) {
        size_t size = sizes[done % TABLE];
        char **place = &ring[done % (sizeof ring / sizeof *ring)];
        free(*place);
        *place = malloc(size);
        (*place)[size - 1] = 1;
    }
}

static void run_appended(unsigned long steps)
{
    enum { PREFIX = 8, STEP = 10, LONGEST = 600 };
    size_t length = LONGEST;
    char *text = NULL;
    while (steps--) {
        if (length >= LONGEST) {
            free(text);
            length = PREFIX;
            text = NULL;
        }
        text = realloc(text, length + STEP);
        memset(text + length, 'x', STEP);
        length += STEP;
    }
}

static void run_null(unsigned long frees)
{
    void *volatile nothing = NULL;
    while (frees--)
        free(nothing);
}

/* From now on all blocks come from a scope. */
static void enter_scope(void)
{
    void *(*create)(const char *, size_t, void *, void *);
    int (*enter)(void *);
    *(void **)&create = dlsym(RTLD_DEFAULT, "hakmem_scope_create");
    *(void **)&enter = dlsym(RTLD_DEFAULT, "hakmem_scope_enter");
    if (!create || !enter || enter(create("pairs", 0, NULL, NULL)) != 0)
        exit(3);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: perf_pairs KIND PAIRS\n");
        return 2;
    }
    unsigned long pairs = strtoul(argv[2], NULL, 10) / DEPTH * DEPTH;
    fill_table(strcmp(argv[1], "fixed") != 0);
    if (strcmp(argv[1], "scoped") == 0)
        enter_scope();
    if (strcmp(argv[1], "unwritten") == 0)
        run_unwritten(pairs);
    else if (strcmp(argv[1], "appended") == 0)
        run_appended(pairs);
    else if (strcmp(argv[1], "null") == 0)
        run_null(pairs);
    else
        run_pairs(pairs);
    printf("mallocs=%lu frees=%lu\n", pairs, pairs);
    return 0;
}
