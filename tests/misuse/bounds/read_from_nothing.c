/* A block of no bytes is read.
 *
 * any: not caught
 */
#include "misuse.h"

void misuse(size_t size)
{
    (void)size;
    char *block = new_victim(0);
    volatile char *byte = hide(block);
    (void)*byte;
    survived();
    free(block);
}
