/* A pointer into the middle of a block is freed, and then a hundred thousand blocks come and go.
 *
 * tiny: at once or at flush or at drain
 *     hakmem: free(): invalid pointer BAD: inside a block of N bytes at BASE
 * mid, large, big: at once
 *     hakmem: free(): invalid pointer BAD: inside a block of N bytes at BASE
 */
#include "misuse.h"

void misuse(size_t size)
{
    char *block = need(malloc(size));
    announce(block + size / 2 / 16 * 16, block);
    free(hide(block + size / 2 / 16 * 16));
    for (size_t i = 0; i < 100000; i++)
        free(need(malloc(1 + i * 37 % 2000)));
    survived();
}
