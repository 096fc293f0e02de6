/* An allocator that is right in everything but not hakmem: the fault of measuring something else.
 *
 *     | ... padding ... | size (16 bytes) | block of `size` bytes | ...
 *
 * It cuts blocks from one mapping, one after another, and never reuses any: the self-test's run
 * is short. Thread rule: one thread at a time. */
#include "faults.h"

#include <string.h>

static uint8_t *next;

static void *foreign_aligned(size_t align, size_t size)
{
    uintptr_t block;

    if (next == NULL)
        next = harness_map((size_t)16 << 30);
    while ((align & (align - 1)) != 0)
        align += align & -align;
    if (align < 16)
        align = 16;
    block = ((uintptr_t)next + 16 + align - 1) & ~(uintptr_t)(align - 1);
    next = (uint8_t *)((block + size + 15) & ~(uintptr_t)15);
    *(size_t *)(block - 16) = size;
    return (void *)block;
}

static void *foreign_malloc(size_t size)
{
    return foreign_aligned(16, size);
}

static void *foreign_calloc(size_t count, size_t size)
{
    return foreign_aligned(16, count * size);
}

static size_t foreign_usable(void *block)
{
    return *(size_t *)((uintptr_t)block - 16);
}

static void *foreign_realloc(void *block, size_t size)
{
    void *moved = block == NULL || size > 0 ? foreign_malloc(size) : NULL;

    if (block != NULL && moved != NULL)
        memcpy(moved, block, size < foreign_usable(block) ? size : foreign_usable(block));
    return moved;
}

static void *foreign_reallocarray(void *block, size_t count, size_t size)
{
    return foreign_realloc(block, count * size);
}

static void foreign_free(void *block)
{
    (void)block;
}

static void foreign_free_sized(void *block, size_t size)
{
    (void)block;
    (void)size;
}

static void foreign_free_aligned_sized(void *block, size_t align, size_t size)
{
    (void)block;
    (void)align;
    (void)size;
}

static int foreign_posix_memalign(void **place, size_t align, size_t size)
{
    *place = foreign_aligned(align, size);
    return 0;
}

static void *foreign_valloc(size_t size)
{
    return foreign_aligned(4096, size);
}

static int foreign_trim(size_t pad)
{
    (void)pad;
    return 0;
}

/* The mapping is zero, and no byte of it is used twice. */
static void *foreign_mallocx(size_t size, int flags)
{
    return foreign_aligned((size_t)1 << (flags & ~FLAG_ZERO), size);
}

static void *foreign_rallocx(void *block, size_t size, int flags)
{
    size_t before = foreign_usable(block);

    return memcpy(foreign_mallocx(size, flags), block, size < before ? size : before);
}

static size_t foreign_xallocx(void *block, size_t size, size_t extra, int flags)
{
    (void)size;
    (void)extra;
    (void)flags;
    return foreign_usable(block);
}

static size_t foreign_sallocx(const void *block, int flags)
{
    (void)flags;
    return *(const size_t *)((uintptr_t)block - 16);
}

static void foreign_dallocx(void *block, int flags)
{
    (void)block;
    (void)flags;
}

static void foreign_sdallocx(void *block, size_t size, int flags)
{
    (void)block;
    (void)size;
    (void)flags;
}

static size_t foreign_nallocx(size_t size, int flags)
{
    (void)flags;
    return size;
}

void plant_foreign(struct entries *entries)
{
    *entries = (struct entries){
        .malloc = foreign_malloc,
        .calloc = foreign_calloc,
        .realloc = foreign_realloc,
        .reallocarray = foreign_reallocarray,
        .free = foreign_free,
        .free_sized = foreign_free_sized,
        .free_aligned_sized = foreign_free_aligned_sized,
        .aligned_alloc = foreign_aligned,
        .memalign = foreign_aligned,
        .posix_memalign = foreign_posix_memalign,
        .valloc = foreign_valloc,
        .malloc_usable_size = foreign_usable,
        .malloc_trim = foreign_trim,
        .mallocx = foreign_mallocx,
        .rallocx = foreign_rallocx,
        .xallocx = foreign_xallocx,
        .sallocx = foreign_sallocx,
        .dallocx = foreign_dallocx,
        .sdallocx = foreign_sdallocx,
        .nallocx = foreign_nallocx,
    };
}
