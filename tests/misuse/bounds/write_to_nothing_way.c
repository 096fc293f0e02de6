/* A block of no bytes is written to, by WAY.
 *
 * any: not caught
 * hardened any: ends by SIGSEGV
 */
#include "access.h"

void misuse(size_t size)
{
    (void)size;
    char *block = new_victim(0);
    write_bytes(block, 1);
    survived();
    free(block);
}
