/* free_sized is told a size, of a block of no bytes.
 *
 * any: at once
 *     hakmem: free_sized(): wrong size for pointer BAD: N, not N
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = need(malloc(0));
    announce(block, block);
    free_sized(hide(block), size);
    survived();
}
