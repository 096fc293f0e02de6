/* operator delete[] is told twice the size that operator new[] was. The block is freed.
 *
 * all: not caught
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = need(_Znam(size));
    announce(block, block);
    _ZdaPvm(hide(block), 2 * size);
    survived();
}
