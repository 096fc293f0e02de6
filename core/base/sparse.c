/* See sparse.h. */
#include "base/sparse.h"

#include <string.h>

bool sparse_is_zero(const void *start, size_t size)
{
    const uint64_t zero = 0;
    const char *bytes = start;
    /* If the first word is zero and each byte equals that eight before it, all are zero. */
    return memcmp(bytes, &zero, sizeof zero) == 0 &&
           memcmp(bytes, bytes + sizeof zero, size - sizeof zero) == 0;
}

size_t sparse_clear(void *start, size_t size)
{
    char *bytes = start;
    size_t cleared = 0;
    for (size_t step; size; bytes += step, size -= step) {
        step = size_min(size, SPARSE_STEP);
        if (sparse_is_zero(bytes, step))
            continue;
        memset(bytes, 0, step);
        cleared += step;
    }
    return cleared;
}

void sparse_copy(void *to, const void *from, size_t size, enum sparse_target target)
{
    char *bytes = to;
    const char *source = from;
    for (size_t step; size; bytes += step, source += step, size -= step) {
        step = size_min(size, SPARSE_STEP);
        bool zero = sparse_is_zero(source, step);
        if (!zero || (target == SPARSE_TO_ANYTHING && !sparse_is_zero(bytes, step)))
            memcpy(bytes, source, step);
    }
}
