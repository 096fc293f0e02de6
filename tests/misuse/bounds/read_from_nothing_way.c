/* A block of no bytes is read, by WAY.
 *
 * any: reads data or reads zero
 * hardened any: ends by SIGSEGV
 */
#include "access.h"

void misuse(size_t size)
{
    (void)size;
    char *block = new_victim(0);
    read_bytes(block, 1);
    survived();
    free(block);
}
