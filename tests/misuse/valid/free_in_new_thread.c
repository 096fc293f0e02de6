/* Blocks that hold addresses are freed by a thread that did not allocate them.
 *
 * all: no mistake
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *blocks[GROUP_MAX + 1] = {NULL};
    for (int round = 0; round < 4; round++) {
        for (size_t i = 0; i < group_for(size); i++) {
            blocks[i] = need(malloc(size));
            fill_words(blocks[i], size, (uintptr_t)&blocks[i]);
        }
        run_in_thread(free_group, blocks);
    }
}
