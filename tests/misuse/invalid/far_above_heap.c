/* An address is freed that lies 1 GiB above a block.
 *
 * all: at once
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

void misuse(size_t size)
{
    char *block = need(malloc(size));
    free_foreign(block + ((size_t)1 << 30));
}
