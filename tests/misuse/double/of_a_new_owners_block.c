/* The block was handed out again in between, and its new owner never frees it.
 *
 * all: not caught
 * hardened all: not applicable
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = new_victim(size);
    free(block);
    if (need(malloc(size)) != block)
        not_applicable();
    free_wrongly(block);
}
