/* Three calls of jemalloc, by those of the C library.
 *
 * redis-server has had the blocks of its scripts from these since 7.4, and asks for the length of
 * such a block by malloc_usable_size. So they have to reach the allocator that serves all others,
 * also where that has no such calls. Preloaded behind it: one that has them comes first.
 */
#include <stdlib.h>

void *mallocx(size_t size, int flags);
void *rallocx(void *block, size_t size, int flags);
void dallocx(void *block, int flags);

void *mallocx(size_t size, int flags)
{
    (void)flags;
    return malloc(size);
}

void *rallocx(void *block, size_t size, int flags)
{
    (void)flags;
    return realloc(block, size);
}

void dallocx(void *block, int flags)
{
    (void)flags;
    free(block);
}
