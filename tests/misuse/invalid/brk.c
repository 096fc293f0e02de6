/* Memory from sbrk is freed.
 *
 * any: at once
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

#include <unistd.h>

void misuse(size_t size)
{
    (void)size;
    char *start = sbrk(8192);
    if (start == (char *)-1)
        not_applicable();
    free_foreign((void *)(((uintptr_t)start + 15) & ~(uintptr_t)15));
}
