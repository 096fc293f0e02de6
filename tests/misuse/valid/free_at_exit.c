/* Blocks are freed by a function that exit calls.
 *
 * all: no mistake
 */
#include "misuse.h"

static void *blocks[GROUP_MAX + 1];

static void free_them(void)
{
    free_group(blocks);
}

void misuse(size_t size)
{
    for (size_t i = 0; i < group_for(size); i++)
        blocks[i] = need(malloc(size));
    atexit(free_them);
}
