/* The block behind the newest one is freed: malloc has never handed it out.
 *
 * tiny: at drain
 *     hakmem: free(): double free of BAD
 *     hakmem: free(): invalid pointer BAD: inside a block of N bytes at BASE
 * mid, large: at once
 *     hakmem: free(): double free of BAD
 *     hakmem: free(): invalid pointer BAD: inside a block of N bytes at BASE
 * big: at once or not applicable
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 *     hakmem: free(): double free of BAD
 * hardened tiny, mid, large: at once
 *     hakmem: free(): invalid pointer BAD: misaligned
 *     hakmem: free(): invalid pointer BAD: inside a block of N bytes at BASE
 */
#include "misuse.h"

void misuse(size_t size)
{
    char *block = need(malloc(size));
    char *next = behind(block);
    announce(next, block);
    free_wrongly(next);
}
