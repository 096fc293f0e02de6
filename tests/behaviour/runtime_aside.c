/* Programs that do not want another allocator, chosen when this file is compiled (behaviour 43).
 *
 * Without OWN_MALLOC: an ordinary program, to be built with AddressSanitizer; "overflow" makes a
 * mistake that only the sanitizer's own heap shows. With OWN_MALLOC: it defines malloc itself.
 */
#include "runtime_support.h"

#include <stdio.h>

#ifndef OWN_MALLOC
#define OWN_MALLOC 0
#endif

#if OWN_MALLOC
static _Alignas(16) char pool[32 << 20];
static size_t pool_used;
static size_t own_calls;

void *malloc(size_t size)
{
    size_t *block = (size_t *)(void *)(pool + pool_used);
    size_t needed = ((size + 15) & ~(size_t)15) + 16;
    if (needed > sizeof pool - pool_used) {
        return NULL;
    }
    pool_used += needed;
    own_calls++;
    block[0] = size;
    return block + 2;
}

void free(void *block)
{
    REQUIRE(block == NULL || ((char *)block >= pool && (char *)block < pool + sizeof pool));
}

void *calloc(size_t count, size_t size)
{
    return malloc(count * size);
}

void *realloc(void *block, size_t size)
{
    void *moved = malloc(size);
    if (block != NULL && moved != NULL) {
        size_t old = ((size_t *)block)[-2];
        memcpy(moved, block, old < size ? old : size);
    }
    return moved;
}
#endif

int main(int argc, char **argv)
{
    char *block = malloc(40);
    REQUIRE(block != NULL);
    memset(block, 'x', 40);
    if (argc > 1 && strcmp(argv[1], "overflow") == 0) {
        volatile size_t past = 40;
        block[past] = 'y';
    }
    FILE *file = fopen("/proc/self/status", "r");
    char *line = NULL;
    size_t capacity = 0;
    REQUIRE(file != NULL && getline(&line, &capacity, file) > 0);
    fclose(file);
    free(line);
    free(block);
#if OWN_MALLOC
    /* The C library's stream and line came from here as well. */
    REQUIRE(own_calls >= 3);
#endif
    puts("done");
    return 0;
}
