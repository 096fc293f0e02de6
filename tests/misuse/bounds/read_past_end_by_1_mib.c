/* The byte is read that lies 1 MiB past the end of a block that has neighbours.
 *
 * all: not caught or ends by SIGSEGV
 */
#include "misuse.h"

void misuse(size_t size)
{
    char *block = surrounded(size);
    volatile char *byte = hide(block + malloc_usable_size(block) + ((size_t)1 << 20) - 1);
    (void)*byte;
    survived();
    free_surrounded();
}
