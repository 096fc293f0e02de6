/* free_sized is told sixteen times the block's size. Where that is not seen, the block is freed.
 *
 * tiny, mid, large: at once
 *     hakmem: free_sized(): wrong size for pointer BAD: N, not N
 * big: not caught
 * hardened all: at once
 *     hakmem: free_sized(): wrong size for pointer BAD: N, not N
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = new_victim(size);
    free_sized(hide(block), 16 * size);
    survived();
    check_freed(block, size);
}
