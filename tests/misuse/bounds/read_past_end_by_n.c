/* The byte is read that lies DISTANCE bytes past the end of a block that has neighbours.
 *
 * all: not caught
 * big: not caught or ends by SIGSEGV
 */
#include "misuse.h"

void misuse(size_t size)
{
    char *block = surrounded(size);
    volatile char *byte = hide(block + malloc_usable_size(block) + DISTANCE - 1);
    (void)*byte;
    survived();
    free_surrounded();
}
