/* A pointer to a local variable is freed by another thread than the one whose it is.
 *
 * any: at once
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

static void *free_it(void *pointer)
{
    free_foreign(pointer);
    return NULL;
}

void misuse(size_t size)
{
    _Alignas(16) char local[64] = {0};
    (void)size;
    run_in_thread(free_it, local);
}
