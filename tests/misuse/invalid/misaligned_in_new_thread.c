/* A thread's first call frees a pointer to an odd address in a block.
 *
 * tiny, mid, large: at once
 *     hakmem: free(): invalid pointer BAD: misaligned
 * big: at once
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
    announce(block + size / 2 / 16 * 16 + 9, block);
    run_in_thread(free_it, block + size / 2 / 16 * 16 + 9);
}
