/* An address in the first page is freed: a member of a structure at NULL.
 *
 * any: at once
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

void misuse(size_t size)
{
    (void)size;
    free_foreign((void *)(uintptr_t)0x40);
}
