/* A pointer to code is freed.
 *
 * any: at once
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

void misuse(size_t size)
{
    (void)size;
    free_foreign((void *)((uintptr_t)&misuse & ~(uintptr_t)15));
}
