/* DISTANCE bytes are written before the start of a block that has neighbours.
 *
 * all: not caught
 * big: not caught or ends by SIGSEGV
 */
#include "misuse.h"

void misuse(size_t size)
{
    char *block = surrounded(size);
    memset(hide(block - DISTANCE), 0x41, DISTANCE);
    survived();
    free_surrounded();
}
