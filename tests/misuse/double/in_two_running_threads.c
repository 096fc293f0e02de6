/* Two threads free the same block, and one of them is still there when the process exits: its cache
 * cannot be looked at.
 *
 * tiny: not caught
 * mid, large, big: at once
 *     hakmem: free(): double free of BAD
 * hardened tiny: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

void misuse(size_t size)
{
    static struct helper helper;
    helper_start(&helper);
    void *block = new_victim(size);
    helper_free(&helper, block);
    free_wrongly(block);
}
