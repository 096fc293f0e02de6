/* The size is asked for at a pointer into a block.
 *
 * all: at once
 *     hakmem: malloc_usable_size(): invalid pointer BAD: inside a block of N bytes at BASE
 */
#include "misuse.h"

void misuse(size_t size)
{
    char *block = need(malloc(size));
    announce(block + 16, block);
    (void)malloc_usable_size(hide(block + 16));
    survived();
}
