/* Clears memory and looks whether it is zero, as fast as vectors of 16 bytes can, which every
 * processor has. All here are whole blocks: multiples of 16 bytes, aligned to 16. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <string.h>

#include "base/macros.h"

typedef uint64_t bytes_16 __attribute__((vector_size(16), may_alias));

/* Longer ones are the C library's, which knows the processor. */
enum { BYTES_INLINE_MAX = 512 };

ALWAYS_INLINE void bytes_clear(void *start, size_t size)
{
    bytes_16 *at = start, *end = at + size / sizeof *at;
    if (UNLIKELY(size > BYTES_INLINE_MAX)) {
        memset(start, 0, size);
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
    enum { STEP = 4 };
    const bytes_16 *at = start, *end = at + size / sizeof *at;
    bytes_16 a = {0, 0}, b = {0, 0}, c = {0, 0}, d = {0, 0};
    for (; end - at >= STEP; at += STEP) {
        a |= at[0];
        b |= at[1];
        c |= at[2];
        d |= at[3];
    }
    for (; at < end; at++)
        a |= *at;
    a |= b | c | d;
    return (a[0] | a[1]) == 0;
}

#endif
