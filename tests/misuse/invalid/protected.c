/* A mapping of the program's own that cannot be touched is freed, at a page inside of it.
 *
 * any: at once
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

#include <sys/mman.h>

void misuse(size_t size)
{
    (void)size;
    char *pages = mmap(NULL, 16 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    free_foreign(pages + 4096);
}
