/* free_aligned_sized is told the right alignment, and half of the size. The block is freed.
 *
 * all: not caught
 * hardened all: at once
 *     hakmem: free_aligned_sized(): wrong size for pointer BAD: N, not N
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = need(aligned_alloc(64, size));
    announce(block, block);
    free_aligned_sized(hide(block), 64, size / 2);
    survived();
}
