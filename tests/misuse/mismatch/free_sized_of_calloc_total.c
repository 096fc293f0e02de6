/* free_sized is told the size of one element of an array from calloc.
 *
 * all: not caught
 * hardened all: at once
 *     hakmem: free_sized(): wrong size for pointer BAD: N, not N
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = need(calloc(4, size / 4));
    announce(block, block);
    free_sized(hide(block), size / 4);
    survived();
}
