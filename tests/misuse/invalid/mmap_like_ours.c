/* A mapping of the program's own that begins where one of hakmem's could, at a multiple of 2 MiB,
 * is freed.
 *
 * any: at once
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

#include <sys/mman.h>

void misuse(size_t size)
{
    const uintptr_t unit = (uintptr_t)2 << 20;
    (void)size;
    char *pages = mmap(NULL, 3 * unit, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        broken("no mapping");
    free_foreign((void *)(((uintptr_t)pages + unit - 1) & ~(unit - 1)));
}
