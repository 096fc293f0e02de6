/* What operator new returned is given to operator delete with an alignment. The block is freed.
 *
 * all: not caught
 * hardened all: at once
 *     hakmem: operator delete(): wrong alignment for pointer BAD: 64, not 16
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = need(_Znwm(size));
    announce(block, block);
    _ZdlPvSt11align_val_t(hide(block), 64);
    survived();
}
