/* What operator new with an alignment returned is given to operator delete without. The block is
 * freed.
 *
 * all: not caught
 * hardened all: at once
 *     hakmem: operator delete(): wrong alignment for pointer BAD: 16, not 64
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = need(_ZnwmSt11align_val_t(size, 64));
    announce(block, block);
    _ZdlPv(hide(block));
    survived();
}
