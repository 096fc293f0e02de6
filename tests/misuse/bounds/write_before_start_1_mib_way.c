/* One MiB is written before the start of a block that has neighbours, by WAY.
 *
 * all: not caught or ends by SIGSEGV
 * hardened all: ends by SIGSEGV
 */
#include "access.h"

void misuse(size_t size)
{
    char *block = surrounded(size);
    write_bytes(block - MIB, MIB);
    survived();
    free_surrounded();
}
