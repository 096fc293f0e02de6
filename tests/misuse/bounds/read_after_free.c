/* A freed block is read.
 *
 * tiny, mid, large: not caught
 * big: not caught or ends by SIGSEGV
 */
#include "misuse.h"

void misuse(size_t size)
{
    char *block = new_victim(size);
    memset(block, 0x41, size);
    free(block);
    volatile char *byte = hide(block + size / 2);
    (void)*byte;
    survived();
}
