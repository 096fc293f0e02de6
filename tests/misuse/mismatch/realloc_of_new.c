/* What operator new returned is given to realloc.
 *
 * all: not caught
 * hardened all: at once
 *     hakmem: realloc(): wrong function for pointer BAD: allocated by operator new
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = need(_Znwm(size));
    announce(block, block);
    (void)need(realloc(hide(block), 2 * size));
    survived();
}
