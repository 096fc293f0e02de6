/* The second time, the block is given to operator delete[].
 *
 * all: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = new_victim(size);
    free(block);
    _ZdaPv(hide(block));
    survived();
}
