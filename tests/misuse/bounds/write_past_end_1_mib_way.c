/* One MiB is written past the end of a block that has neighbours, by WAY.
 *
 * all: not caught or ends by SIGSEGV
 * hardened tiny, mid, large: at free or ends by SIGSEGV
 *     hakmem: free(): write beyond the end of BAD
 */
#include "access.h"

void misuse(size_t size)
{
    char *block = surrounded(size);
    write_bytes(block + malloc_usable_size(block), MIB);
    survived();
    free_surrounded();
}
