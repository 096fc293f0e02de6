/* All that is in a new block, which was another one before, is copied into the next new ones.
 *
 * all: no mistake
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *blocks[GROUP_MAX];
    size_t count = group_for(size);
    for (int round = 0; round < 4; round++) {
        void *source = need(malloc(size));
        for (size_t i = 0; i < count; i++) {
            blocks[i] = need(malloc(size));
            memcpy(blocks[i], source, size);
        }
        for (size_t i = 0; i < count; i++)
            free(blocks[i]);
        free(source);
    }
}
