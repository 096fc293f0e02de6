/* A block is read that malloc has just returned, where another one was freed.
 *
 * tiny, mid, large: reads data
 * big: reads data or reads zero
 * hardened tiny, mid, large: reads zero
 */
#include "access.h"

void misuse(size_t size)
{
    char *blocks[4];
    for (int i = 0; i < 4; i++)
        blocks[i] = memset(need(malloc(size)), 0x41, size);
    for (int i = 0; i < 4; i++)
        free(blocks[i]);
    char *block = need(malloc(size));
    announce(block, block);
    read_bytes(block, size);
}
