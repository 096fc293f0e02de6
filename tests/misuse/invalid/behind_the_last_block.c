/* A pointer is freed that lies behind the last block of a slab, where no block fits any more.
 *
 * tiny: at flush
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 * mid: at once
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 * large, big: not applicable
 * hardened tiny: at once
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

void misuse(size_t size)
{
    const uintptr_t unit = (uintptr_t)64 << 10;
    if (size > SLAB_BLOCK_MAX)
        not_applicable();
    /* Blocks whose size does not divide 64 KiB leave a rest at the end of it. */
    char *block = need(malloc(size <= 1024 ? 40 : 5000));
    char *rest = (char *)(((uintptr_t)block | (unit - 1)) & ~(uintptr_t)15);
    (void)need(malloc(size <= 1024 ? 40 : 5000));
    free_foreign(rest);
}
