/* Memory from brk is freed.
 *
 * any: at once
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

#include <sys/syscall.h>
#include <unistd.h>

void misuse(size_t size)
{
    (void)size;
    /* musl's sbrk moves nothing. */
    uintptr_t start = (uintptr_t)syscall(SYS_brk, 0), end = start + 8192;
    if ((uintptr_t)syscall(SYS_brk, end) != end)
        not_applicable();
    free_foreign((void *)((start + 15) & ~(uintptr_t)15));
}
