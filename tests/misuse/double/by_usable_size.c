/* The size of the block is asked for after it was freed.
 *
 * all: at once
 *     hakmem: malloc_usable_size(): double free of BAD
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = new_victim(size);
    free(block);
    (void)malloc_usable_size(hide(block));
    survived();
}
