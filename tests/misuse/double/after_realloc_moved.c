/* realloc has moved the contents elsewhere, and the old pointer is freed.
 *
 * tiny, mid, large: at once
 *     hakmem: free(): double free of BAD
 * big: at once
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 * hardened big: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = new_victim(size);
    void *neighbour = need(malloc(size));
    void *moved = need(realloc(hide(block), 9 * size));
    if (moved == block)
        not_applicable();
    free_wrongly(block);
    free(neighbour);
}
