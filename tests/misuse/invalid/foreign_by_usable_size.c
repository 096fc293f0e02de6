/* The size is asked for of a block that hakmem never handed out.
 *
 * any: at once
 *     hakmem: malloc_usable_size(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

void misuse(size_t size)
{
    static _Alignas(16) char storage[64];
    (void)size;
    announce(storage, NULL);
    (void)malloc_usable_size(hide(storage));
    survived();
}
