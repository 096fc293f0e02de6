/* The size is asked for at a pointer eight bytes into a block.
 *
 * tiny, mid, large: at once
 *     hakmem: malloc_usable_size(): invalid pointer BAD: misaligned
 * big: at once
 *     hakmem: malloc_usable_size(): invalid pointer BAD: inside a block of N bytes at BASE
 */
#include "misuse.h"

void misuse(size_t size)
{
    char *block = need(malloc(size));
    announce(block + 8, block);
    (void)malloc_usable_size(hide(block + 8));
    survived();
}
