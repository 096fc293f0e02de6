/* Functions that call malloc's exported ones, by their names, as glibc's own do.
 *
 * A program, or a library before this one, may replace malloc, free, calloc and realloc alone, as
 * the C library allows: then the functions here have to serve its blocks. So they call through the
 * table of the dynamic linker, from a file of their own, in which the compiler does not see the
 * definitions. Each ends in a jump, so that in samples its caller is the caller.
 */
#include <errno.h>
#include <stdlib.h>

#include "api/alloc.h"
#include "hardened.h"
#include "os/fatal.h"
#include "override/override.h"

EXPORT void *reallocarray(void *block, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(block, total);
}

/* Only the hardened library knows the requested size; the default one knows that it was at most
 * that of the block. Foreign blocks pass. */
static void expect_size(const void *block, size_t size, size_t alignment, const char *call)
{
    size_t length = alloc_object_size_fast(block);
    if (HARDENED)
        hardened_expect(block, size, alignment, FORM_MALLOC, call);
    else if (UNLIKELY(size > length) && block)
        fatal_told(call, "wrong size for pointer", size, block, length);
}

EXPORT void free_sized(void *block, size_t size)
{
    expect_size(block, size, MIN_ALIGNMENT, "free_sized");
    free(block);
}

EXPORT void free_aligned_sized(void *block, size_t alignment, size_t size)
{
    expect_size(block, size, alignment, "free_aligned_sized");
    free(block);
}
