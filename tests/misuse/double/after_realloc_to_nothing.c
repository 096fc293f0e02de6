/* realloc to size 0 has freed the block already.
 *
 * all: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = new_victim(size);
    if (realloc(hide(block), 0))
        broken("realloc to nothing gives a block");
    free_wrongly(block);
}
