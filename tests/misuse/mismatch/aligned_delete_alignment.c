/* operator delete is told another alignment than operator new was. The block is freed.
 *
 * all: not caught
 * hardened all: at once
 *     hakmem: operator delete(): wrong alignment for pointer BAD: 4096, not 64
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = need(_ZnwmSt11align_val_t(size, 64));
    announce(block, block);
    _ZdlPvSt11align_val_t(hide(block), 4096);
    survived();
}
