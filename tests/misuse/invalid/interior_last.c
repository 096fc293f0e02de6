/* A pointer to the last 16 bytes of a block is freed.
 *
 * tiny: at flush
 *     hakmem: free(): invalid pointer BAD: inside a block of N bytes at BASE
 * mid, large, big: at once
 *     hakmem: free(): invalid pointer BAD: inside a block of N bytes at BASE
 * hardened tiny: at once
 *     hakmem: free(): invalid pointer BAD: inside a block of N bytes at BASE
 */
#include "misuse.h"

void misuse(size_t size)
{
    free_inside(size, (size - 1) / 16 * 16);
}
