/* A pointer into a block from memalign is freed.
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
    char *block = need(memalign(256, size));
    announce(block + 16, block);
    free_wrongly(block + 16);
}
