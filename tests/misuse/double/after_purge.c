/* All free memory has gone back to the system between the two frees.
 *
 * tiny, mid: at once
 *     hakmem: free(): double free of BAD
 * large: at once or at drain
 *     hakmem: free(): double free of BAD
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 * big: at once
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 * hardened big: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = new_purged_victim(size);
    free_wrongly(block);
}
