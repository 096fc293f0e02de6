/* One MiB is written before the start of a block that has neighbours, by WAY.
 *
 * all: not caught or ends by SIGSEGV
 * hardened tiny, mid, large: at free or ends by SIGSEGV
 *     hakmem: free(): write beyond the end of NEIGHBOUR
 *     hakmem: free(): write beyond the end of BAD
 */
#include "access.h"

void misuse(size_t size)
{
    char *block = surrounded(size);
    write_bytes(block - MIB, MIB);
    survived();
    free_surrounded();
}
