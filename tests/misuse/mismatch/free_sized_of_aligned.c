/* A block with an alignment is given to free_sized. The block is freed.
 *
 * all: not caught
 * hardened all: at once
 *     hakmem: free_sized(): wrong alignment for pointer BAD: 16, not 4096
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = need(aligned_alloc(4096, size));
    announce(block, block);
    free_sized(hide(block), size);
    survived();
}
