/* A block that realloc has moved is read where it was, by WAY.
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
    /* What lies behind keeps it from growing in place. */
    (void)need(malloc(size));
    if (need(realloc(block, 8 * size)) == block)
        not_applicable();
    read_bytes(block, size);
    survived();
}
