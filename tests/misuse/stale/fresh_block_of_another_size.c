/* A block is read that malloc has just returned, where larger ones were freed.
 *
 * tiny: reads data or reads zero
 * mid: reads data or reads zero
 * large: reads data
 * big: reads data or reads zero
 * hardened mid, large: reads zero
 */
#include "access.h"

void misuse(size_t size)
{
    char *blocks[GROUP_MAX + 1] = {NULL};
    size_t count = group_for(2 * size);
    for (size_t i = 0; i < count; i++)
        blocks[i] = memset(need(malloc(2 * size)), 0x41, 2 * size);
    free_group(blocks);
    (void)hakmem_thread_flush();
    char *block = need(malloc(size));
    announce(block, block);
    read_bytes(block, size);
}
