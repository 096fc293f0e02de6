/* A page that the program mapped itself is freed.
 *
 * any: at once
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

#include <sys/mman.h>

void misuse(size_t size)
{
    (void)size;
    void *pages = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        broken("no mapping");
    free_foreign(pages);
}
