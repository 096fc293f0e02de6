/* A pointer 8 bytes into a block of no bytes is freed.
 *
 * any: at flush
 *     hakmem: free(): invalid pointer BAD: misaligned
 * hardened any: at once
 *     hakmem: free(): invalid pointer BAD: misaligned
 */
#include "misuse.h"

void misuse(size_t size)
{
    (void)size;
    free_inside(0, 8);
}
