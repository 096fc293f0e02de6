/* A block of no bytes is freed twice.
 *
 * any: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

void misuse(size_t size)
{
    (void)size;
    void *block = new_victim(0);
    free(block);
    free_wrongly(block);
}
