/* DISTANCE bytes are written past the end of a block that has neighbours, by WAY.
 *
 * all: not caught
 * big: not caught or ends by SIGSEGV
 * hardened tiny, mid: at free or ends by SIGSEGV
 *     hakmem: free(): write beyond the end of BAD
 * hardened large, big: ends by SIGSEGV
 */
#include "access.h"

void misuse(size_t size)
{
    char *block = surrounded(size);
    write_bytes(block + malloc_usable_size(block), DISTANCE);
    survived();
    free_surrounded();
}
