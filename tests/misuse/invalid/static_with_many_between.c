/* A pointer to a static variable is freed when a hundred thousand blocks have come and gone.
 *
 * any: at once
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

static _Alignas(16) char variable[64];

void misuse(size_t size)
{
    (void)size;
    for (size_t i = 0; i < 100000; i++)
        free(need(malloc(1 + i * 37 % 2000)));
    free_foreign(variable);
}
