/* The freed block is written to, which destroys the mark that tells of the first free.
 *
 * tiny: at drain
 *     hakmem: free(): double free of BAD
 * mid, large, big: at once
 *     hakmem: free(): double free of BAD
 * hardened tiny: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = new_victim(size);
    free(block);
    if (size <= SLAB_BLOCK_MAX)
        memset(hide(block), 0xff, size);
    free_wrongly(block);
}
