/* A pointer to a local variable is freed.
 *
 * any: at once
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

void misuse(size_t size)
{
    _Alignas(16) char local[64] = {0};
    (void)size;
    free_foreign(local);
}
