/* Every byte that malloc_usable_size tells of is written.
 *
 * all: no mistake
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *blocks[GROUP_MAX];
    size_t count = group_for(size);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = need(malloc(size));
        memset(blocks[i], (int)i, malloc_usable_size(blocks[i]));
    }
    for (size_t i = 0; i < count; i++)
        free(blocks[count - 1 - i]);
}
