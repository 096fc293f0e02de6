/* A block from operator new is deleted twice.
 *
 * all: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = need(_Znwm(size));
    announce(block, block);
    _ZdlPv(block);
    _ZdlPv(hide(block));
    survived();
}
