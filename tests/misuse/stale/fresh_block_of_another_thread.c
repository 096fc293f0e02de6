/* A block is read that malloc has just returned, where one of a thread that has ended was freed.
 *
 * all: reads data or reads zero
 * hardened tiny, mid, large: reads zero
 */
#include "access.h"

static void *fill_and_free(void *size)
{
    char *blocks[GROUP_MAX + 1] = {NULL};
    size_t bytes = (size_t)size, count = group_for(bytes);
    for (size_t i = 0; i < count; i++)
        blocks[i] = memset(need(malloc(bytes)), 0x41, bytes);
    return free_group(blocks);
}

void misuse(size_t size)
{
    run_in_thread(fill_and_free, (void *)size);
    char *block = need(malloc(size));
    announce(block, block);
    read_bytes(block, size);
}
