/* free_aligned_sized is given a pointer that hakmem never handed out.
 *
 * any: at once
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

void misuse(size_t size)
{
    static _Alignas(64) char storage[64];
    announce(storage, NULL);
    free_aligned_sized(hide(storage), 64, size);
    survived();
}
