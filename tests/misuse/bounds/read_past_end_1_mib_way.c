/* One MiB past the end of a block that has neighbours is read, by WAY.
 *
 * all: reads data or ends by SIGSEGV
 * big: reads data or reads zero or ends by SIGSEGV
 * hardened all: ends by SIGSEGV
 */
#include "access.h"

void misuse(size_t size)
{
    char *block = surrounded(size);
    read_bytes(block + malloc_usable_size(block), MIB);
    survived();
    free_surrounded();
}
