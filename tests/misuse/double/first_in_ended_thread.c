/* The first free was made by a thread that has ended.
 *
 * all: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

void misuse(size_t size)
{
    struct helper helper;
    helper_start(&helper);
    void *block = new_victim(size);
    helper_free(&helper, block);
    helper_end(&helper);
    free_wrongly(block);
}
