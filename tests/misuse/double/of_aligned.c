/* A block from memalign is freed twice.
 *
 * all: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = need(memalign(4096, size));
    (void)need(memalign(4096, size));
    announce(block, block);
    free(block);
    free_wrongly(block);
}
