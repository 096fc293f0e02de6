/* free_sized is told one byte less than malloc was. The block is freed.
 *
 * all: not caught
 * hardened all: at once
 *     hakmem: free_sized(): wrong size for pointer BAD: N, not N
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = new_victim(size);
    free_sized(hide(block), size - 1);
    survived();
}
