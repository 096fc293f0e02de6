/* A freed block is read, by WAY.
 *
 * tiny, mid, large: reads data
 * big: reads data or ends by SIGSEGV
 * hardened tiny, mid: reads zero
 * hardened large, big: ends by SIGSEGV
 */
#include "access.h"

void misuse(size_t size)
{
    char *block = new_victim(size);
    memset(block, 0x41, size);
    free(block);
    read_bytes(block, size);
    survived();
}
