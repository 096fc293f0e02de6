/* A freed block is written to, by WAY, and handed out again.
 *
 * tiny, mid, large: not caught
 * big: not caught or ends by SIGSEGV
 * hardened tiny, mid: at flush or at exit
 *     hakmem: free(): write after free of BAD
 *     hakmem: malloc(): write after free of BAD
 * hardened large, big: ends by SIGSEGV
 */
#include "access.h"

void misuse(size_t size)
{
    void *block = new_victim(size);
    free(block);
    write_bytes(block, size);
    survived();
    for (size_t i = many(size); i > 0; i--)
        free(need(malloc(size)));
}
