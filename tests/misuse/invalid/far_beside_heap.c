/* An address is freed that lies 256 MiB below a block: hakmem may use it one day.
 *
 * all: at once
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

void misuse(size_t size)
{
    char *block = need(malloc(size));
    free_foreign((void *)((uintptr_t)(block - ((size_t)256 << 20)) & ~(uintptr_t)15));
}
