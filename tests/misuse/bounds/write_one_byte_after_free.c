/* One byte in the middle of a freed block is written to, and the block is handed out again.
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
    char *block = new_victim(size);
    free(block);
    write_bytes(block + size / 2, 1);
    survived();
    for (size_t i = many(size); i > 0; i--)
        free(need(malloc(size)));
}
