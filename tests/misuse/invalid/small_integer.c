/* The number 1 is freed.
 *
 * any: at once
 *     hakmem: free(): invalid pointer BAD: misaligned
 */
#include "misuse.h"

void misuse(size_t size)
{
    (void)size;
    free_foreign((void *)(uintptr_t)1);
}
