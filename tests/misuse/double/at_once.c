/* A block is freed twice in a row.
 *
 * all: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = new_victim(size);
    free(block);
    free_wrongly(block);
}
