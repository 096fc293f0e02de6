/* Every block holds the addresses of the next one and the one before.
 *
 * all: no mistake
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *blocks[GROUP_MAX];
    size_t count = group_for(size);
    for (size_t i = 0; i < count; i++)
        blocks[i] = need(malloc(size));
    for (size_t i = 0; i < count; i++) {
        ((void **)blocks[i])[0] = blocks[(i + 1) % count];
        ((void **)blocks[i])[1] = blocks[(i + count - 1) % count];
    }
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
}
