/* One MiB is written before the start of a block that has neighbours.
 *
 * all: not caught or ends by SIGSEGV
 */
#include "misuse.h"

void misuse(size_t size)
{
    char *block = surrounded(size);
    memset(hide(block - ((size_t)1 << 20)), 0x41, (size_t)1 << 20);
    survived();
    free_surrounded();
}
