/* For tests that have the core inside the program, with its assertions on, and where the names of
 * malloc are the C library's or a sanitizer's: these names, for the core's functions. */
#ifndef SCOPE_INSIDE_H
#define SCOPE_INSIDE_H

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "api/alloc.h"

static inline int inside_posix_memalign(void **block, size_t alignment, size_t size)
{
    *block = alloc_aligned(size, alignment);
    return *block ? 0 : ENOMEM;
}

static inline char *inside_strdup(const char *text)
{
    return memcpy(alloc(strlen(text) + 1), text, strlen(text) + 1);
}

#define malloc(size) alloc(size)
#define free(block) release(block)
#define calloc(count, size) alloc_zeroed(count, size)
#define realloc(block, size) alloc_resize(block, size)
#define memalign(alignment, size) alloc_aligned(size, alignment)
#define aligned_alloc(alignment, size) alloc_aligned(size, alignment)
#define posix_memalign(block, alignment, size) inside_posix_memalign(block, alignment, size)
#define strdup(text) inside_strdup(text)
#define malloc_usable_size(block) alloc_usable_size(block, "malloc_usable_size")
#define malloc_object_size(address) alloc_object_size(address)

#endif
