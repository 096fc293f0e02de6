/* A pointer to the very last byte of the first superslab, 2 MiB full of blocks, is freed: what lies
 * behind it may not be mapped.
 *
 * tiny: at flush or ends by SIGSEGV
 *     hakmem: free(): invalid pointer BAD: misaligned
 * mid: at once
 *     hakmem: free(): invalid pointer BAD: misaligned
 * large, big: not applicable
 * hardened tiny, mid: not applicable
 */
#include "misuse.h"

void misuse(size_t size)
{
    if (size > SLAB_BLOCK_MAX)
        not_applicable();
    const uintptr_t region = (uintptr_t)2 << 20;
    char *block, *base = need(malloc(size));
    uintptr_t end = ((uintptr_t)base | (region - 1)) + 1;
    /* 512 bytes, or 16 KiB: sizes that divide a slab. */
    size = size <= 1024 ? 512 : 16384;
    for (size_t taken = 0; taken < 2 * region; taken += size) {
        block = need(malloc(size));
        if ((uintptr_t)block + size == end) {
            announce(block + size - 1, block);
            free_wrongly(block + size - 1);
            return;
        }
    }
    not_applicable();
}
