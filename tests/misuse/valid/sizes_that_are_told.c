/* Each free that is told a size and an alignment is told those that were asked for, after realloc
 * the last.
 *
 * all: no mistake
 */
#include "misuse.h"

void misuse(size_t size)
{
    free_sized(need(malloc(size)), size);
    free_sized(need(calloc(2, size)), 2 * size);
    free_sized(need(realloc(need(malloc(size)), size + 1)), size + 1);
    free_sized(need(realloc(need(malloc(size)), size - 1)), size - 1);
    free_sized(need(realloc(need(aligned_alloc(64, size)), size - 1)), size - 1);
    for (size_t alignment = 8; alignment <= 4096; alignment *= 2) {
        free_aligned_sized(need(aligned_alloc(alignment, size)), alignment, size);
        if (alignment > 16)
            _ZdlPvmSt11align_val_t(need(_ZnwmSt11align_val_t(size, alignment)), size, alignment);
        if (alignment > 16)
            _ZdlPvSt11align_val_t(need(_ZnwmSt11align_val_t(size, alignment)), alignment);
    }
    _ZdlPvm(need(_Znwm(size)), size);
    _ZdaPvm(need(_Znam(size)), size);
    _ZdlPv(need(_Znwm(size)));
    _ZdaPv(need(_Znam(size)));
    free_sized(need(malloc(0)), 0);
    free_sized(need(realloc(need(malloc(0)), size)), size);
    free_aligned_sized(need(aligned_alloc(64, 0)), 64, 0);
    _ZdlPvm(need(_Znwm(0)), 0);
    _ZdaPvm(need(_Znam(0)), 0);
    _ZdlPvSt11align_val_t(need(_ZnwmSt11align_val_t(0, 64)), 64);
    free_sized(NULL, size);
    free_aligned_sized(NULL, 64, size);
    _ZdlPvm(NULL, size);
    _ZdaPvm(NULL, size);
    survived();
}
