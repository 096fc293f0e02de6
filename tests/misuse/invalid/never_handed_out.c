/* The block behind the newest one is freed: malloc has never handed it out.
 *
 * tiny: at drain
 *     hakmem: free(): double free of BAD
 * mid, large: at once
 *     hakmem: free(): double free of BAD
 * big: at once or not applicable
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 *     hakmem: free(): double free of BAD
 * hardened tiny: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

void misuse(size_t size)
{
    char *block = need(malloc(size));
    char *next = behind(block);
    announce(next, NULL);
    free_wrongly(next);
}
