/* realloc makes a block longer and shorter, and a byte is written behind what is left of it.
 *
 * tiny, mid, large: not caught
 * big: not caught or ends by SIGSEGV
 * hardened tiny, mid: at once
 *     hakmem: free(): write beyond the end of BAD
 * hardened large, big: at once or ends by SIGSEGV
 *     hakmem: free(): write beyond the end of BAD
 */
#include "access.h"

void misuse(size_t size)
{
    char *block = need(malloc(size));
    block = need(realloc(block, 2 * size));
    block = need(realloc(block, size - size / 8));
    announce(block, block);
    write_bytes(block + (size - size / 8), 1);
    free_wrongly(block);
}
