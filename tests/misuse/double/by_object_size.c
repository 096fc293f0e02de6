/* How many bytes there are from the start of the block is asked for after it was freed.
 *
 * all: not caught
 * hardened all: at once
 *     hakmem: malloc_object_size(): double free of BAD
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = new_victim(size);
    free(block);
    (void)malloc_object_size(hide(block));
    survived();
}
