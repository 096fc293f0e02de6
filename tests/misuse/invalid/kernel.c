/* An address in the kernel's half is freed.
 *
 * any: at once
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

void misuse(size_t size)
{
    (void)size;
    free_foreign((void *)(uintptr_t)-4096);
}
