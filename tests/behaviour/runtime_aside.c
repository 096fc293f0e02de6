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
/* Of the preloaded library. */
extern void free_sized(void *block, size_t size) __attribute__((weak));
extern void free_aligned_sized(void *block, size_t alignment, size_t size) __attribute__((weak));

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

/* What others have over the four functions, and glibc does not ask a program to replace: its own
 * reallocarray calls the program's realloc, and so does the library's. */
static void call_others(void)
{
    char *block = malloc(3);
    memcpy(block, "ab", 3);
    block = reallocarray(block, 300, 4);
    REQUIRE(block != NULL && strcmp(block, "ab") == 0);
    REQUIRE(free_sized != NULL && free_aligned_sized != NULL);
    free_sized(block, 1200);
    free_aligned_sized(malloc(64), 16, 64);
    free_sized(NULL, 64);
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
    call_others();
#endif
    puts("done");
    return 0;
}
