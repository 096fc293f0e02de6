/* A freed block is written to when its memory has gone back to the system.
 *
 * tiny, mid: not caught
 * large: not caught or ends by SIGSEGV
 * big: ends by SIGSEGV
 * hardened tiny, mid: at exit
 *     hakmem: free(): write after free of BAD
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = new_purged_victim(size);
    memset(hide(block), 0x41, size);
    survived();
}
