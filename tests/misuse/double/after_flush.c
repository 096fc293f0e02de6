/* The thread has flushed its cache between the two frees.
 *
 * all: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = new_victim(size);
    void *neighbour = need(malloc(size));
    free(block);
    hakmem_thread_flush();
    free_wrongly(block);
    free(neighbour);
}
