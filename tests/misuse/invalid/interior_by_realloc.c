/* realloc is given a pointer into a block.
 *
 * all: at once
 *     hakmem: realloc(): invalid pointer BAD: inside a block of N bytes at BASE
 */
#include "misuse.h"

void misuse(size_t size)
{
    char *block = need(malloc(size));
    announce(block + 16, block);
    void *volatile result = realloc(hide(block + 16), 2 * size);
    (void)result;
    survived();
}
