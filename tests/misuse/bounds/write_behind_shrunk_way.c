/* realloc makes a block shorter by a quarter, and a byte of that quarter is written, by WAY.
 *
 * tiny, mid, large: not caught
 * big: not caught or ends by SIGSEGV
 * hardened tiny, mid: at once
 *     hakmem: free(): write beyond the end of BAD
 * hardened large, big: at once or ends by SIGSEGV or not caught
 *     hakmem: free(): write beyond the end of BAD
 */
#include "access.h"

void misuse(size_t size)
{
    char *block = need(malloc(size));
    memset(block, 1, size);
    char *shrunk = need(realloc(block, size - size / 4));
    announce(shrunk, shrunk);
    if (shrunk != block)
        not_applicable();
    write_bytes(shrunk + size - size / 8, 1);
    free_wrongly(shrunk);
}
