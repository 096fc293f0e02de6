/* The freed block is written to and freed again: it lies in the cache twice, and is handed out
 * twice. The free by its second owner is found.
 *
 * tiny, mid: at once
 *     hakmem: free(): double free of BAD
 * large, big: not applicable
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
    void *first = need(malloc(size));
    void *second = need(malloc(size));
    free(first);
    free_wrongly(second);
}
