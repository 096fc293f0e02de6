/* See bytes.h. */
#include "hardened/bytes.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <string.h>

typedef uint64_t bytes_32 __attribute__((vector_size(32), may_alias, aligned(16)));

/* Granularity of clearing. */
enum { PIECE = 1024 };

/* By four independent sums. */
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

#ifdef __x86_64__

static bool has_avx2; /* const after bytes_start */

__attribute__((target("avx2"))) static bool are_zero_avx2(const void *start, size_t size)
{
    return are_zero(start, size);
}

/* The registers that the system keeps for the program, as bits. */
static uint32_t kept_registers(void)
{
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

/* Not by __builtin_cpu_supports: its constructor asks the processor ten times in each process, and
 * below a hypervisor each answer takes some us. */
void bytes_start(void)
{
    enum { FEATURES = 1, MORE_FEATURES = 7, VECTORS_KEPT = 6 };
    unsigned a, b, c, d;
    has_avx2 = __get_cpuid(FEATURES, &a, &b, &c, &d) && (c & bit_OSXSAVE) &&
               (kept_registers() & VECTORS_KEPT) == VECTORS_KEPT &&
               __get_cpuid_count(MORE_FEATURES, 0, &a, &b, &c, &d) && (b & bit_AVX2);
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
    /* The beginning has probably been written to. */
    memset(at, 0, piece);
    while ((at += piece, size -= piece) != 0) {
        piece = size_min(size, PIECE);
        if (!bytes_are_zero_long(at, piece))
            memset(at, 0, piece);
    }
}
