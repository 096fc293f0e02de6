/* A freed pointer into a block is handed out by the next malloc, and stays in use.
 *
 * tiny: not caught
 * mid, large, big: at once
 *     hakmem: free(): invalid pointer BAD: inside a block of N bytes at BASE
 * hardened tiny: at once
 *     hakmem: free(): invalid pointer BAD: inside a block of N bytes at BASE
 */
#include "misuse.h"

void misuse(size_t size)
{
    char *block = need(malloc(size));
    announce(block + 16, block);
    free(hide(block + 16));
    if (need(malloc(size)) != block + 16)
        broken("another block comes first");
}
