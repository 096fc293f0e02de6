/* Two threads free the same block; the first has ended before the second begins.
 *
 * all: at once
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
    helper_end(&first);
    helper_free(&second, block);
    survived();
    helper_end(&second);
}
