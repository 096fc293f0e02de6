/* The names by which Rust reaches the allocator. They say the alignment each time, as Rust does,
 * and have a prefix: the C library's malloc stays what it is. */
#include "api/alloc.h"
#include "override/override.h"

EXPORT HOT_ENTRY void *hakmem_alloc(size_t size, size_t alignment)
{
    if (LIKELY(alignment <= MIN_ALIGNMENT))
        return alloc(size);
    return alloc_aligned(size, alignment);
}

EXPORT void *hakmem_alloc_zeroed(size_t size, size_t alignment)
{
    return alloc_aligned_zeroed(size, alignment);
}

EXPORT void *hakmem_resize(void *block, size_t size, size_t alignment)
{
    return alloc_resize_aligned(block, size_max(size, 1), alignment);
}

EXPORT HOT_ENTRY void hakmem_free(void *block)
{
    release(block);
}
