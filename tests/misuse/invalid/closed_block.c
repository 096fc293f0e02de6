/* A block is freed again when its memory has gone back and belongs to a mapping of the program's
 * own.
 *
 * tiny, mid: not applicable
 * large: not applicable
 * big: at once
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 * hardened big: not applicable
 */
#include "misuse.h"

#include <sys/mman.h>

void misuse(size_t size)
{
    if (size < (size_t)2 << 20)
        not_applicable();
    void *block = new_purged_victim(size);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    /* The hardened preset keeps its addresses. */
    if (mmap(block, 4096, PROT_READ | PROT_WRITE, flags, -1, 0) != block)
        not_applicable();
    free_wrongly(block);
}
