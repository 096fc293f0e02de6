/* A pointer to a static variable is freed.
 *
 * any: at once
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

void misuse(size_t size)
{
    static _Alignas(16) char storage[64];
    (void)size;
    free_foreign(storage);
}
