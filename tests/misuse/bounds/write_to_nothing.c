/* A block of no bytes is written to.
 *
 * any: not caught
 */
#include "misuse.h"

void misuse(size_t size)
{
    (void)size;
    char *block = new_victim(0);
    *(volatile char *)hide(block) = 0x41;
    survived();
    free(block);
}
