/* free_aligned_sized is told an alignment that the block does not have. The block is freed.
 *
 * all: not caught
 * hardened all: at once
 *     hakmem: free_aligned_sized(): wrong alignment for pointer BAD: 65536, not 16
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = new_victim(size);
    free_aligned_sized(hide(block), 65536, size);
    survived();
    check_freed(block, size);
}
