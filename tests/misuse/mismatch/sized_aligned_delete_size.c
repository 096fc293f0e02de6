/* operator delete is told the right alignment, and twice the size that operator new was. The block
 * is freed.
 *
 * all: not caught
 * hardened all: at once
 *     hakmem: operator delete(): wrong size for pointer BAD: N, not N
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = need(_ZnwmSt11align_val_t(size, 64));
    announce(block, block);
    _ZdlPvmSt11align_val_t(hide(block), 2 * size, 64);
    survived();
}
