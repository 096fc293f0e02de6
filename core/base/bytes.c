/* See bytes.h. */
#include "base/bytes.h"

#include <string.h>

typedef uint64_t bytes_32 __attribute__((vector_size(32), may_alias, aligned(16)));

/* What is cleared or left alone as a whole. */
enum { PIECE = 1024 };

/* By four sums, none of which waits for another. */
ALWAYS_INLINE bool are_zero(const void *start, size_t size)
{
    enum { STEP = 4 };
    const bytes_32 *at = start, *end = at + size / (STEP * sizeof *at) * STEP;
    bytes_32 a = {0}, b = {0}, c = {0}, d = {0};
    for (; at < end; at += STEP) {
        a |= at[0];
        b |= at[1];
        c |= at[2];
        d |= at[3];
    }
    a |= b | c | d;
    const bytes_16 *rest = (const bytes_16 *)at;
    const bytes_16 *rest_end = (const bytes_16 *)start + size / sizeof *rest;
    bytes_16 sum = {a[0] | a[1], a[2] | a[3]};
    for (; rest < rest_end; rest++)
        sum |= *rest;
    return (sum[0] | sum[1]) == 0;
}

#if defined(__x86_64__)

static bool has_avx2; /* const after bytes_start */

__attribute__((target("avx2"))) static bool are_zero_avx2(const void *start, size_t size)
{
    return are_zero(start, size);
}

void bytes_start(void)
{
    __builtin_cpu_init();
    has_avx2 = __builtin_cpu_supports("avx2");
}

bool bytes_are_zero_long(const void *start, size_t size)
{
    return has_avx2 ? are_zero_avx2(start, size) : are_zero(start, size);
}

#else

void bytes_start(void)
{
}

bool bytes_are_zero_long(const void *start, size_t size)
{
    return are_zero(start, size);
}

#endif

void bytes_clear_long(void *start, size_t size)
{
    char *at = start;
    size_t piece = size_min(size, PIECE);
    /* The beginning was hardly left as it was. */
    memset(at, 0, piece);
    while ((at += piece, size -= piece) != 0) {
        piece = size_min(size, PIECE);
        if (!bytes_are_zero_long(at, piece))
            memset(at, 0, piece);
    }
}
