/* What operator new[] returned is given to operator delete. The block is freed.
 *
 * all: not caught
 * hardened all: at once
 *     hakmem: operator delete(): wrong function for pointer BAD: allocated by operator new[]
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = need(_Znam(size));
    announce(block, block);
    _ZdlPv(hide(block));
    survived();
}
