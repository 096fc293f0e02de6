/* Ten other blocks are freed between the two frees.
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
    void *others[10];
    for (int i = 0; i < 10; i++)
        others[i] = need(malloc(size));
    void *block = new_victim(size);
    free(block);
    for (int i = 0; i < 10; i++)
        free(others[i]);
    free_wrongly(block);
}
