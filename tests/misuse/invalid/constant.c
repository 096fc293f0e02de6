/* A pointer to a constant is freed.
 *
 * any: at once
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

void misuse(size_t size)
{
    static const _Alignas(16) char text[16] = "not a block";
    (void)size;
    free_foreign(text);
}
