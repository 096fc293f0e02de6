/* NULL is freed, in every way there is.
 *
 * any: no mistake
 */
#include "misuse.h"

void misuse(size_t size)
{
    free(NULL);
    cfree(NULL);
    free_sized(NULL, size);
    free_aligned_sized(NULL, 64, size);
    _ZdlPv(NULL);
    _ZdaPv(NULL);
    _ZdlPvm(NULL, size);
    _ZdlPvSt11align_val_t(NULL, 64);
    if (malloc_usable_size(NULL) != 0)
        broken("usable size of NULL");
    free(need(realloc(NULL, size)));
}
