/* The bytes by which realloc has made a block longer are read, where another one was freed.
 *
 * tiny, mid: reads data
 * large, big: reads data or reads zero
 * hardened tiny, mid: reads zero
 */
#include "access.h"

void misuse(size_t size)
{
    char *blocks[5] = {NULL};
    for (int i = 0; i < 4; i++)
        blocks[i] = memset(need(malloc(2 * size)), 0x41, 2 * size);
    free_group(blocks);
    char *block = need(realloc(memset(need(malloc(size)), 0, size), 2 * size));
    announce(block, block);
    read_bytes(block + size, size);
}
