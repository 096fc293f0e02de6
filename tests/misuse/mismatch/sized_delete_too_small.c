/* operator delete is told half of the size that operator new was. The block is freed.
 *
 * all: not caught
 * hardened all: at once
 *     hakmem: operator delete(): wrong size for pointer BAD: N, not N
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = need(_Znwm(size));
    announce(block, block);
    _ZdlPvm(hide(block), size / 2);
    survived();
}
