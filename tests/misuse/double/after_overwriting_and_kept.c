/* The freed block is written to, freed again and handed out twice, and neither owner frees it.
 *
 * tiny: not caught
 * mid: at once
 *     hakmem: free(): double free of BAD
 * large, big: not applicable
 * hardened tiny: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

void misuse(size_t size)
{
    if (size > SLAB_BLOCK_MAX)
        not_applicable();
    void *block = new_victim(size);
    free(block);
    memset(hide(block), 0, size);
    free(hide(block));
    if (need(malloc(size)) != need(malloc(size)))
        broken("the two blocks are not one");
}
