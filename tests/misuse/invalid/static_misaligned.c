/* A pointer into a static variable, no multiple of 16, is freed.
 *
 * any: at once
 *     hakmem: free(): invalid pointer BAD: misaligned
 */
#include "misuse.h"

void misuse(size_t size)
{
    static _Alignas(16) char storage[64];
    (void)size;
    free_foreign(storage + 5);
}
