/* Another block is freed between the two frees.
 *
 * tiny, mid, large: at once
 *     hakmem: free(): double free of BAD
 * big: at once
 *     hakmem: free(): double free of BAD
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *other = need(malloc(size));
    void *block = new_victim(size);
    free(block);
    free(other);
    free_wrongly(block);
}
