/* The process ends by _exit right after the second free, without a last look at its caches.
 *
 * all: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

#include <unistd.h>

void misuse(size_t size)
{
    void *block = new_victim(size);
    free(block);
    free_wrongly(block);
    _exit(0);
}
