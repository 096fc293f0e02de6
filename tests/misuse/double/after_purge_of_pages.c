/* The pages of the block have gone back to the system while its slab is in use: the mark that tells
 * of the first free is lost.
 *
 * tiny, large, big: not applicable
 * mid: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

enum { BLOCKS = 16 };

void misuse(size_t size)
{
    /* The page in which the block begins, with the mark, has to be wholly free. */
    if (size <= 1024 || size > SLAB_BLOCK_MAX)
        not_applicable();
    size = size > 16384 ? size : 16384;
    void *blocks[BLOCKS], *block;
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = need(malloc(size));
    /* Between two that go as well. */
    block = blocks[BLOCKS / 2 + 2];
    announce(block, block);
    for (int i = 0; i < BLOCKS; i++)
        if (i % 4 != 0)
            free(blocks[i]);
    (void)hakmem_purge();
    free_wrongly(block);
}
