/* What the tests of scopes share. */
#ifndef SCOPE_SUPPORT_H
#define SCOPE_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <hakmem/hakmem.h>

#ifdef SCOPE_INSIDE
#include "scope_inside.h"
#endif

/* Also in children and other threads, from where cmocka cannot be reached. */
#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #x);                  \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#ifndef MIB
#define MIB ((size_t)1 << 20)
#endif

static inline struct hakmem_scope_figures usage_of(struct hakmem_scope *scope)
{
    struct hakmem_scope_figures usage;
    CHECK(hakmem_scope_usage(scope, &usage, sizeof usage) == sizeof usage);
    return usage;
}

static inline struct hakmem_scope *make_scope(const char *name, size_t limit)
{
    struct hakmem_scope *scope = hakmem_scope_create(name, limit, NULL, NULL);
    CHECK(scope);
    return scope;
}

/* Random numbers with a fixed start (SplitMix64). */
static inline uint64_t scope_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Bytes of the process in memory. */
static inline size_t resident_now(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%*u %lu", &pages) == 1);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

#endif
