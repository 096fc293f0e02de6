/* What operator new[] returned for no bytes is given to operator delete.
 *
 * any: not caught
 * hardened any: at once
 *     hakmem: operator delete(): wrong function for pointer BAD: allocated by operator new[]
 */
#include "misuse.h"

void misuse(size_t size)
{
    (void)size;
    void *block = need(_Znam(0));
    announce(block, block);
    _ZdlPv(hide(block));
    survived();
}
