/* One MiB is written past the end of a block that has neighbours, by WAY.
 *
 * all: not caught or ends by SIGSEGV
 * hardened all: ends by SIGSEGV
 */
#include "access.h"

void misuse(size_t size)
{
    char *block = surrounded(size);
    write_bytes(block + malloc_usable_size(block), MIB);
    survived();
    free_surrounded();
}
