/* The first free was made by a thread that was cancelled.
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
    pthread_cancel(helper.thread);
    pthread_join(helper.thread, NULL);
    free_wrongly(block);
}
