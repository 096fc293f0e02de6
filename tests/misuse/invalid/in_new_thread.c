/* A thread's first call frees a pointer that hakmem never handed out.
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
    static _Alignas(16) char storage[64];
    (void)size;
    run_in_thread(free_it, storage);
}
