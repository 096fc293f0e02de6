/* A thread frees a pointer into a block. Before it ends, all blocks around are freed rightly, and
 * their slab goes back, unless others use it: what the pointer lay in may not be known any more.
 *
 * tiny, mid: at once or at exit
 *     hakmem: free(): double free of BAD
 *     hakmem: free(): invalid pointer BAD: inside a block of N bytes at BASE
 * large, big: not applicable
 */
#include "misuse.h"

void misuse(size_t size)
{
    if (size > SLAB_BLOCK_MAX)
        not_applicable();
    struct helper helper;
    helper_start(&helper);
    helper_free(&helper, need(malloc(2 * size)));
    char *block = need(malloc(size));
    announce(block + 16, block);
    helper_free(&helper, block + 16);
    free(block);
    (void)hakmem_purge();
    survived();
    helper_end(&helper);
}
