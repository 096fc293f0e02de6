/* The byte behind a block is set to zero, as by a string that is one letter too long. A zero stands
 * there where nothing else does.
 *
 * all: not caught
 * hardened large, big: ends by SIGSEGV
 */
#include "access.h"

void misuse(size_t size)
{
    char *block = surrounded(size);
    memset(hide(block + size), 0, 1);
    survived();
    free_surrounded();
}
