/* hakmem's own function for sizes is given a pointer that hakmem never handed out.
 *
 * any: at once
 *     hakmem: hakmem_usable_size(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

void misuse(size_t size)
{
    static _Alignas(16) char storage[64];
    (void)size;
    announce(storage, NULL);
    (void)hakmem_usable_size(hide(storage));
    survived();
}
