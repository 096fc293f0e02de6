/* A library whose constructor allocates, and, where it is linked with hakmem, whose IFUNC
 * resolver does so while the dynamic linker is still relocating the program (behaviour 25).
 *
 * A resolver may only call what is relocated already. The dynamic linker relocates what a library
 * needs before the library itself, hence the difference between the two builds of this file.
 */
#include "runtime_support.h"

/* 1: the library depends on hakmem, so that its resolver may call malloc. */
#ifndef EARLY_RESOLVER
#define EARLY_RESOLVER 0
#endif

#define KEPT 64

bool early_lib_check(void);

static void *kept[KEPT];

static size_t kept_size(unsigned index)
{
    return 1 + (size_t)index * index * 40;
}

__attribute__((constructor(101))) static void allocate_in_constructor(void)
{
    free(NULL);
    for (unsigned index = 0; index < KEPT; index++) {
        size_t size = kept_size(index);
        if (index % 4 == 0) {
            kept[index] = aligned_alloc(64, size);
        } else if (index % 4 == 1) {
            kept[index] = calloc(1, size);
        } else {
            kept[index] = realloc(malloc(size / 2), size);
        }
        REQUIRE(kept[index] != NULL);
        pattern_fill(kept[index], size, index);
    }
}

#if EARLY_RESOLVER
typedef bool resolved_function(void);

static void *resolver_block;

static bool resolved_late(void)
{
    return resolver_block != NULL && pattern_holds(resolver_block, 100, 7);
}

__attribute__((used)) static resolved_function *resolve(void)
{
    /* Copies may be the library's, too. */
    static const char letters[] = "early";
    resolver_block = malloc(100);
    REQUIRE(resolver_block != NULL);
    strcpy(memset(resolver_block, 1, 100), letters);
    memmove((char *)resolver_block + 1, memcpy(resolver_block, letters, 2), 2);
    REQUIRE(memcmp(resolver_block, "eea", 3) == 0);
    pattern_fill(resolver_block, 100, 7);
    free(malloc(40000));
    return resolved_late;
}

static bool early_lib_resolved(void) __attribute__((ifunc("resolve")));

/* The address in a table makes the dynamic linker run the resolver at load, not at first call. */
static resolved_function *const volatile resolved_table[] = {early_lib_resolved};
#endif

/* Called by the program at the end: are the early blocks intact, and can they be freed? */
bool early_lib_check(void)
{
    bool intact = true;
    for (unsigned index = 0; index < KEPT; index++) {
        intact = intact && pattern_holds(kept[index], kept_size(index), index);
        free(kept[index]);
    }
#if EARLY_RESOLVER
    intact = intact && resolved_table[0]();
    free(resolver_block);
#endif
    return intact;
}
