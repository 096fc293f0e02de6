/* A program whose first call of the allocator is chosen by its first argument and made before any
 * constructor, from .preinit_array (behaviours 14 and 25). Its own IFUNC resolver allocates too,
 * when the argument RESOLVER is compiled in, which is even earlier.
 *
 * usage: runtime_early FIRST LIBRARY [FILE]: LIBRARY is part of the name of the library that must
 * serve malloc, FILE the library to open for FIRST = dlopen.
 */
#include "runtime_support.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>

#ifndef EARLY_RESOLVER
#define EARLY_RESOLVER 0
#endif

/* Present when the library with the constructor was linked or preloaded. */
extern bool early_lib_check(void) __attribute__((weak));

static void *first_block;
static void *constructor_block;

static void *thread_without_allocation(void *argument)
{
    return argument;
}

static void *call_named(const char *name, const char *file)
{
    pthread_t thread;
    void *block = NULL;
    if (strcmp(name, "malloc") == 0) {
        block = malloc(200);
    } else if (strcmp(name, "big") == 0) {
        block = malloc((size_t)5 << 20);
    } else if (strcmp(name, "calloc") == 0) {
        block = calloc(20, 10);
    } else if (strcmp(name, "realloc") == 0) {
        block = realloc(NULL, 200);
    } else if (strcmp(name, "memalign") == 0) {
        block = memalign(4096, 200);
    } else if (strcmp(name, "posix_memalign") == 0) {
        REQUIRE(posix_memalign(&block, 64, 200) == 0);
    } else if (strcmp(name, "free") == 0) {
        free(NULL);
    } else if (strcmp(name, "usable") == 0) {
        REQUIRE(malloc_usable_size(NULL) == 0);
    } else if (strcmp(name, "trim") == 0) {
        (void)malloc_trim(0);
    } else if (strcmp(name, "copies") == 0) {
        static char variable[40];
        strcat(strcpy(memset(variable, 1, sizeof variable), "before"), " malloc");
        block = memcpy(malloc(200), variable, sizeof variable);
        REQUIRE(strcmp(block, "before malloc") == 0);
    } else if (strcmp(name, "thread") == 0) {
        /* The dynamic linker allocates the thread's table of TLS blocks by calloc. */
        REQUIRE(pthread_create(&thread, NULL, thread_without_allocation, NULL) == 0);
        REQUIRE(pthread_join(thread, NULL) == 0);
    } else if (strcmp(name, "dlopen") == 0) {
        REQUIRE(dlopen(file, RTLD_NOW | RTLD_LOCAL) != NULL);
    } else {
        REQUIRE(!"a known first call");
    }
    return block != NULL ? block : malloc(200);
}

static void make_first_call(int argc, char **argv, char **environment)
{
    (void)environment;
    if (argc < 3) {
        return;
    }
    errno = 0;
    first_block = call_named(argv[1], argc > 3 ? argv[3] : NULL);
    REQUIRE(first_block != NULL);
    REQUIRE(strcmp(argv[1], "dlopen") == 0 || errno == 0);
    pattern_fill(first_block, 200, 1);
}

__attribute__((section(".preinit_array"), used)) static void (*const before_constructors)(
    int, char **, char **) = make_first_call;

__attribute__((constructor(101))) static void allocate_in_constructor(void)
{
    constructor_block = malloc(3000);
    REQUIRE(constructor_block != NULL);
    pattern_fill(constructor_block, 3000, 2);
}

#if EARLY_RESOLVER
typedef bool resolved_function(void);

static void *resolver_block;

static bool resolver_worked(void)
{
    return pattern_holds(resolver_block, 500, 3);
}

__attribute__((used)) static resolved_function *resolve(void)
{
    resolver_block = malloc(500);
    REQUIRE(resolver_block != NULL);
    pattern_fill(resolver_block, 500, 3);
    return resolver_worked;
}

static bool resolved(void) __attribute__((ifunc("resolve")));
#endif

int main(int argc, char **argv)
{
    if (argc < 3) {
        say("usage: runtime_early FIRST LIBRARY [FILE]\n");
        return 2;
    }
    Dl_info where;
    REQUIRE(dladdr((void *)(uintptr_t)&malloc, &where) != 0);
    REQUIRE(strstr(where.dli_fname, argv[2]) != NULL);
    REQUIRE(pattern_holds(first_block, 200, 1));
    REQUIRE(pattern_holds(constructor_block, 3000, 2));
    REQUIRE(malloc_usable_size(first_block) >= 200);
    free(first_block);
    free(constructor_block);
#if EARLY_RESOLVER
    REQUIRE(resolved());
    free(resolver_block);
#endif
    if (early_lib_check != NULL) {
        REQUIRE(early_lib_check());
        say("library checked\n");
    }
    uint32_t seed = 1;
    for (unsigned round = 0; round < 2000; round++) {
        size_t size = random_size(&seed);
        void *block = malloc(size);
        REQUIRE(block != NULL);
        pattern_fill(block, size, round);
        REQUIRE(pattern_holds(block, size, round));
        free(block);
    }
    return 0;
}
