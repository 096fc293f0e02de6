/* The second time, the block is given to operator delete with an alignment.
 *
 * all: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = new_victim(size);
    free(block);
    _ZdlPvSt11align_val_t(hide(block), 16);
    survived();
}
