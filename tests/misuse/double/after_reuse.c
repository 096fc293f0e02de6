/* The block was handed out again in between. The second free takes it from its new owner, which no
 * allocator can see; the new owner's own free is found.
 *
 * all: at once
 *     hakmem: free(): double free of BAD
 * hardened all: not applicable
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = new_victim(size);
    free(block);
    void *reused = need(malloc(size));
    if (reused != block)
        not_applicable();
    free(hide(block));
    free_wrongly(reused);
}
