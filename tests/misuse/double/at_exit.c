/* The second free comes from a function that exit calls.
 *
 * all: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

static void *block;

static void free_block(void)
{
    free_wrongly(block);
}

void misuse(size_t size)
{
    block = new_victim(size);
    atexit(free_block);
    free(block);
}
