/* The block is given to realloc after it was freed.
 *
 * all: at once
 *     hakmem: realloc(): double free of BAD
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = new_victim(size);
    free(block);
    void *volatile result = realloc(hide(block), 2 * size);
    (void)result;
    survived();
}
