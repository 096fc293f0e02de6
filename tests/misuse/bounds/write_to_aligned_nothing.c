/* A block of no bytes that has an alignment is written to.
 *
 * any: not caught
 * hardened any: ends by SIGSEGV
 */
#include "access.h"

void misuse(size_t size)
{
    char *block = need(aligned_alloc(size, 0));
    announce(block, block);
    write_bytes(block, 1);
    survived();
    free(block);
}
