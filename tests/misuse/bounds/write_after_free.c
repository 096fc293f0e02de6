/* A freed block is written to, and handed out again.
 *
 * tiny, mid, large: not caught
 * big: not caught or ends by SIGSEGV
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = new_victim(size);
    free(block);
    memset(hide(block), 0x41, size);
    survived();
    free(need(malloc(size)));
}
