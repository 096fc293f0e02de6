/* Every word of every block holds the block's own address.
 *
 * all: no mistake
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *blocks[GROUP_MAX];
    size_t count = group_for(size);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < count; i++) {
            blocks[i] = need(malloc(size));
            fill_words(blocks[i], size, (uintptr_t)blocks[i]);
        }
        for (size_t i = 0; i < count; i++)
            free(blocks[i]);
    }
}
