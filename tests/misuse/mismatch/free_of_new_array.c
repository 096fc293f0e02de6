/* What operator new[] returned is given to free. The block is freed.
 *
 * all: not caught
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = need(_Znam(size));
    announce(block, block);
    free(hide(block));
    survived();
}
