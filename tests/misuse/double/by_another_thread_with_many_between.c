/* A hundred thousand blocks come and go, and then another thread frees the block again.
 * Where big blocks are unmapped at once, their addresses may be others' by then.
 *
 * tiny: at once or at drain or at exit
 *     hakmem: free(): double free of BAD
 * mid, large: at once
 *     hakmem: free(): double free of BAD
 * big: at once or at drain or not caught
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

static void *free_it(void *block)
{
    free_wrongly(block);
    return NULL;
}

void misuse(size_t size)
{
    void *block = new_victim(size);
    free(block);
    for (size_t i = 0; i < 100000; i++)
        free(need(malloc(1 + i * 37 % 2000)));
    run_in_thread(free_it, block);
}
