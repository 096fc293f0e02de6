/* An address is freed at which nothing was ever mapped.
 *
 * any: at once
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

void misuse(size_t size)
{
    (void)size;
    free_foreign((void *)((uintptr_t)1 << 40));
}
