/* realloc makes a block a quarter as long, and longer again: what it loses must not come back.
 *
 * all: reads data or reads zero
 * hardened all: reads zero
 */
#include "access.h"

void misuse(size_t size)
{
    char *block = need(malloc(size));
    memset(block, 1, size);
    block = need(realloc(block, size / 4));
    block = need(realloc(block, size));
    read_bytes(block + size / 4, size - size / 4);
    free(block);
}
