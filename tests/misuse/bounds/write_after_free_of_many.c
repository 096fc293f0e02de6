/* Of many blocks that are freed at once the last one is written to.
 *
 * tiny, mid, large: not caught
 * big: not caught or ends by SIGSEGV
 * hardened tiny, mid: at flush or at exit
 *     hakmem: free(): write after free of BAD
 * hardened large: at exit or ends by SIGSEGV
 *     hakmem: free(): write after free of BAD
 * hardened big: ends by SIGSEGV
 */
#include "access.h"

void misuse(size_t size)
{
    char *blocks[GROUP_MAX + 1] = {NULL};
    size_t count = group_for(size);
    for (size_t i = 0; i < count; i++)
        blocks[i] = memset(need(malloc(size)), 1, size);
    char *last = blocks[count - 1];
    announce(last, last);
    free_group(blocks);
    write_bytes(last, 1);
    survived();
}
