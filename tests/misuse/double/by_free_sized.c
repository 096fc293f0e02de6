/* The second time, the block is given to free_sized.
 *
 * all: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = new_victim(size);
    free(block);
    free_sized(hide(block), size);
    survived();
}
