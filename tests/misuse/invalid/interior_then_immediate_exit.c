/* A pointer into a block is freed, and the process ends by _exit, without a last look at its
 * caches.
 *
 * tiny: not caught
 * mid, large, big: at once
 *     hakmem: free(): invalid pointer BAD: inside a block of N bytes at BASE
 * hardened tiny: at once
 *     hakmem: free(): invalid pointer BAD: inside a block of N bytes at BASE
 */
#include "misuse.h"

#include <unistd.h>

void misuse(size_t size)
{
    free_inside(size, 16);
    _exit(0);
}
