/* A pointer eight bytes into a block is freed.
 *
 * tiny: at flush
 *     hakmem: free(): invalid pointer BAD: misaligned
 * mid, large: at once
 *     hakmem: free(): invalid pointer BAD: misaligned
 * big: at once
 *     hakmem: free(): invalid pointer BAD: inside a block of N bytes at BASE
 * hardened tiny: at once
 *     hakmem: free(): invalid pointer BAD: misaligned
 */
#include "misuse.h"

void misuse(size_t size)
{
    free_inside(size, 8);
}
