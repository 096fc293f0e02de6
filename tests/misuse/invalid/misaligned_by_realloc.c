/* realloc is given a pointer eight bytes into a block.
 *
 * tiny, mid, large: at once
 *     hakmem: realloc(): invalid pointer BAD: misaligned
 * big: at once
 *     hakmem: realloc(): invalid pointer BAD: inside a block of N bytes at BASE
 */
#include "misuse.h"

void misuse(size_t size)
{
    char *block = need(malloc(size));
    announce(block + 8, block);
    void *volatile result = realloc(hide(block + 8), 2 * size);
    (void)result;
    survived();
}
