/* Clears memory and checks whether it is zero, by vectors. Sizes are those of whole blocks of
 * slabs: multiples of 16 bytes, aligned to 16. */
#ifndef HARDENED_BYTES_H
#define HARDENED_BYTES_H

#include "base/macros.h"

/* Every processor has such vectors. */
typedef uint64_t bytes_16 __attribute__((vector_size(16), may_alias));

/* Longer ranges are worth a call. */
enum { BYTES_INLINE_MAX = 512 };

/* Finds out which vectors the processor has. To be called once. */
void bytes_start(void);

/* Writes nothing to bytes that are zero already: a write costs more than a read. */
void bytes_clear_long(void *start, size_t size);

bool bytes_are_zero_long(const void *start, size_t size);

ALWAYS_INLINE void bytes_clear(void *start, size_t size)
{
    bytes_16 *at = start, *end = at + size / sizeof *at;
    if (size > BYTES_INLINE_MAX) {
        bytes_clear_long(start, size);
        return;
    }
    /* A compiler that sees a memset in the loop calls it. */
    for (; at < end; at++) {
        *at = (bytes_16){0, 0};
        __asm__("" : "+r"(at));
    }
}

ALWAYS_INLINE bool bytes_are_zero(const void *start, size_t size)
{
    const bytes_16 *at = start, *end = at + size / sizeof *at;
    if (size > BYTES_INLINE_MAX)
        return bytes_are_zero_long(start, size);
    bytes_16 sum = *at++;
    for (; at < end; at++)
        sum |= *at;
    return (sum[0] | sum[1]) == 0;
}

/* Whether the bytes up to `end`, a multiple of 8, are zero; for few bytes. */
ALWAYS_INLINE bool bytes_rest_is_zero(const char *from, const char *end)
{
    const uint64_t *at = (const uint64_t *)round_down((uintptr_t)from, sizeof *at);
    if ((const char *)at >= end)
        return true;
    uint64_t rest = *at++ >> (uintptr_t)from % sizeof *at * 8;
    for (; (const char *)at < end; at++)
        rest |= *at;
    return rest == 0;
}

#endif
