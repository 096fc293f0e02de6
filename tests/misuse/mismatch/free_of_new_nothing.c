/* What operator new returned for no bytes is given to free.
 *
 * any: not caught
 * hardened any: at once
 *     hakmem: free(): wrong function for pointer BAD: allocated by operator new
 */
#include "misuse.h"

void misuse(size_t size)
{
    (void)size;
    void *block = need(_Znwm(0));
    announce(block, block);
    free_wrongly(block);
}
