/* Two threads free the same block, and both end after that.
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
    struct helper first, second;
    helper_start(&first);
    helper_start(&second);
    void *block = new_victim(size);
    helper_free(&first, block);
    helper_free(&second, block);
    helper_end(&first);
    helper_end(&second);
    survived();
}
