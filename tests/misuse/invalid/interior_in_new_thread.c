/* A thread's first call frees a pointer into a block.
 *
 * all: at once
 *     hakmem: free(): invalid pointer BAD: inside a block of N bytes at BASE
 */
#include "misuse.h"

static void *free_it(void *pointer)
{
    free_wrongly(pointer);
    return NULL;
}

void misuse(size_t size)
{
    char *block = need(malloc(size));
    announce(block + 16, block);
    run_in_thread(free_it, block + 16);
}
