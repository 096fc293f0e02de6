/* A neighbour overflows into the freed block, which destroys the mark that tells of the first free.
 *
 * tiny: at drain
 *     hakmem: free(): double free of BAD
 * mid, large, big: not applicable
 * hardened tiny: not applicable
 */
#include "misuse.h"

void misuse(size_t size)
{
    char *neighbour = need(malloc(size));
    size_t usable = malloc_usable_size(neighbour);
    char *block = need(malloc(size));
    announce(block, block);
    if (size > 1024 || block != neighbour + usable)
        not_applicable();
    free(block);
    memset(neighbour, 0, usable + 16);
    free_wrongly(block);
}
