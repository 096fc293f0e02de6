/* So many blocks are freed in between that the thread's cache overflows and memory goes back.
 *
 * tiny, mid: at once
 *     hakmem: free(): double free of BAD
 * large, big: at once
 *     hakmem: free(): double free of BAD
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

void misuse(size_t size)
{
    size_t count = many(size);
    void **others = need(malloc(count * sizeof(void *)));
    void *block = new_victim(size);
    for (size_t i = 0; i < count; i++)
        others[i] = need(malloc(size));
    free(block);
    for (size_t i = 0; i < count; i++)
        free(others[i]);
    free_wrongly(block);
}
