/* The second time, the block is given to free_aligned_sized.
 *
 * all: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = need(memalign(64, size));
    announce(block, block);
    free_aligned_sized(block, 64, size);
    free_aligned_sized(hide(block), 64, size);
    survived();
}
