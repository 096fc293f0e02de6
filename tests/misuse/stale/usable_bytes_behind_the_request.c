/* The bytes that a block has beyond what was asked for are read.
 *
 * tiny: reads data or reads zero
 * mid, large: reads data
 * big: reads data or reads zero
 * hardened all: not applicable
 */
#include "access.h"

void misuse(size_t size)
{
    char *freed = need(malloc(size));
    memset(freed, 0x41, malloc_usable_size(freed));
    free(freed);
    size -= size / 32 + 1;
    char *block = need(malloc(size));
    announce(block, block);
    if (malloc_usable_size(block) == size)
        not_applicable();
    read_bytes(block + size, malloc_usable_size(block) - size);
}
