/* reallocarray is given a pointer that hakmem never handed out.
 *
 * any: at once
 *     hakmem: realloc(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

void misuse(size_t size)
{
    static _Alignas(16) char storage[64];
    announce(storage, NULL);
    void *volatile result = reallocarray(hide(storage), 2, size);
    (void)result;
    survived();
}
