/* A block is freed again, by another thread, when its memory has gone back to the system.
 *
 * tiny, mid: not applicable
 * large: not applicable
 * big: at once
 *     hakmem: free(): double free of BAD
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

static void *free_it(void *block)
{
    free_wrongly(block);
    return NULL;
}

void misuse(size_t size)
{
    if (size < (size_t)2 << 20)
        not_applicable();
    void *block = new_purged_victim(size);
    run_in_thread(free_it, block);
}
