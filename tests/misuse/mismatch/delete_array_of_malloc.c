/* What malloc returned is given to operator delete[]. The block is freed.
 *
 * all: not caught
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = new_victim(size);
    _ZdaPv(hide(block));
    survived();
}
