/* DISTANCE bytes are written before the start of a block that has neighbours, by WAY.
 *
 * all: not caught
 * big: not caught or ends by SIGSEGV
 * hardened tiny, mid: at free or ends by SIGSEGV
 *     hakmem: free(): write beyond the end of NEIGHBOUR
 *     hakmem: free(): write before the start of BAD
 * hardened large: at free
 *     hakmem: free(): write beyond the end of BAD
 * hardened big: ends by SIGSEGV
 */
#include "access.h"

void misuse(size_t size)
{
    char *block = surrounded(size);
    /* One canary of 256 ends with the very byte that is written: that would change nothing. */
    volatile char *before = hide(block - 1);
    if (*before == 0x41)
        *before = 0x42;
    else
        write_bytes(block - DISTANCE, DISTANCE);
    survived();
    free_surrounded();
}
