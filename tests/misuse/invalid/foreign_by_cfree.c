/* cfree, the old name of free, is given a pointer that hakmem never handed out.
 *
 * any: at once
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

void misuse(size_t size)
{
    static _Alignas(16) char storage[64];
    (void)size;
    announce(storage, NULL);
    cfree(hide(storage));
    survived();
}
