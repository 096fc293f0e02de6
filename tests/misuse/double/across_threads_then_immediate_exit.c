/* The block lies in the cache of another thread, and the process ends by _exit.
 *
 * tiny: not caught
 * mid, large, big: at once
 *     hakmem: free(): double free of BAD
 * hardened tiny: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

#include <unistd.h>

void misuse(size_t size)
{
    struct helper helper;
    helper_start(&helper);
    void *block = new_victim(size);
    helper_free(&helper, block);
    free_wrongly(block);
    _exit(0);
}
