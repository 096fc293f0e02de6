/* An odd address is freed in pages that were a large block and are free.
 *
 * tiny, mid, big: not applicable
 * large: at once
 *     hakmem: free(): invalid pointer BAD: misaligned
 */
#include "misuse.h"

void misuse(size_t size)
{
    if (size <= SLAB_BLOCK_MAX || size >= (size_t)2 << 20)
        not_applicable();
    /* Not of a size of which several blocks share a slab. */
    char *block = need(malloc(size * 10));
    announce(block + 9, block);
    free(block);
    (void)hakmem_purge();
    free_wrongly(block + 9);
}
