/* One MiB is written past the end of a block that has neighbours.
 *
 * all: not caught or ends by SIGSEGV
 */
#include "misuse.h"

void misuse(size_t size)
{
    char *block = surrounded(size);
    memset(hide(block + malloc_usable_size(block)), 0x41, (size_t)1 << 20);
    survived();
    free_surrounded();
}
