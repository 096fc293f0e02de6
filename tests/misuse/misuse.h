/* Owns what the parts of the misuse program share: the shape of a case, and how it tells the
 * runner which pointer is about to be misused.
 *
 * Each case is a small program with one mistake (or, if its name starts with "valid", none). The
 * program runs one case for blocks of one size; run_misuse.py runs all of them and reads from
 * standard output and standard error what became of the mistake.
 */
#ifndef MISUSE_H
#define MISUSE_H

#define _GNU_SOURCE 1

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <hakmem/hakmem.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct misuse_case {
    const char *name;
    void (*run)(size_t size);
};

/* The cases, each part's list ended by a NULL name. */
extern const struct misuse_case invalid_cases[];
extern const struct misuse_case double_cases[];
extern const struct misuse_case thread_cases[];
extern const struct misuse_case limit_cases[];
extern const struct misuse_case valid_cases[];

/* Tells the runner what comes next: `bad` will be misused; `base` is the block that it lies in, or
 * NULL. Must come before the mistake, and after it only survived(). */
void announce(const void *bad, const void *base);

/* Tells the runner that the call with the mistake has returned. */
void survived(void);

/* Ends the program where a case has no meaning: realloc did not move the block, for instance. */
_Noreturn void not_applicable(void);

/* Ends the program because something besides the mistake is wrong. */
_Noreturn void broken(const char *what);

/* Hides where a pointer comes from, so that the compiler cannot reason about the mistake. */
static inline void *hide(const void *pointer)
{
    const void *volatile hidden = pointer;
    return (void *)hidden;
}

/* A block, or the end of the program. */
static inline void *need(void *block)
{
    if (block == NULL) {
        broken("out of memory");
    }
    return hide(block);
}

/* The second free of a block, or whatever else is wrong with the pointer. */
static inline void free_again(void *block)
{
    free(hide(block));
    survived();
}

/* Keeps some blocks, so that the thread's cache is not full and takes the blocks freed next. A full
 * one is looked through, which would catch mistakes by accident. */
static inline void make_room(size_t size)
{
    for (unsigned i = 0; i < 5; i++) {
        (void)need(malloc(size));
    }
}

/* The C library no longer declares it, but old programs call it. */
extern void cfree(void *block);

/* Declared by C libraries that are newer than some that hakmem runs on. */
extern void free_sized(void *block, size_t size);
extern void free_aligned_sized(void *block, size_t alignment, size_t size);

/* The C++ operator delete, called by its mangled name. */
extern void _ZdlPv(void *block);

#endif
