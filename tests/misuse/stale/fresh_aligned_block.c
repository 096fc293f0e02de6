/* A block is read that memalign has just returned, where another one was freed.
 *
 * tiny, mid, large: reads data
 * big: reads data or reads zero
 * hardened tiny, mid, large: reads zero
 */
#include "access.h"

void misuse(size_t size)
{
    char *freed = need(memalign(64, size));
    memset(freed, 0x41, size);
    free(freed);
    char *block = need(memalign(64, size));
    announce(block, block);
    read_bytes(block, size);
}
