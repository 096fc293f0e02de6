/* A number is freed that is no address on this processor.
 *
 * any: at once
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

void misuse(size_t size)
{
    (void)size;
    free_foreign((void *)((uintptr_t)0x7ff0 << 48 | 0x1000));
}
