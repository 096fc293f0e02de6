/* An address at which nothing was ever mapped is freed by a thread that has made no call before.
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
    (void)size;
    run_in_thread(free_it, (void *)((uintptr_t)1 << 40));
}
