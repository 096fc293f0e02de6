/* operator delete is told a size, of what operator new returned for no bytes.
 *
 * any: not caught
 * hardened any: at once
 *     hakmem: operator delete(): wrong size for pointer BAD: N, not N
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = need(_Znwm(0));
    announce(block, block);
    _ZdlPvm(hide(block), size);
    survived();
}
