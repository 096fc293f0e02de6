/* A block from calloc is freed twice.
 *
 * all: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = need(calloc(1, size));
    announce(block, block);
    free(block);
    free_wrongly(block);
}
