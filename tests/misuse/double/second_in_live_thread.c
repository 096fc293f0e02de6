/* Another thread frees a block that lies in the cache of this one.
 *
 * tiny: at drain
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
    free(block);
    helper_free(&helper, block);
    helper_end(&helper);
    survived();
}
