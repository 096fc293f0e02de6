/* The first free was made by a thread that lives on, so that the block lies in its cache.
 *
 * tiny: at drain or at exit
 *     hakmem: free(): double free of BAD
 * mid, large, big: at once
 *     hakmem: free(): double free of BAD
 * hardened tiny: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

void misuse(size_t size)
{
    struct helper helper;
    helper_start(&helper);
    void *block = new_victim(size);
    helper_free(&helper, block);
    free_wrongly(block);
    helper_end(&helper);
}
