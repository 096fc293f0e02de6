/* Floating point inside of malloc: in the state in which a program begins, whatever the caller has
 * set, and without a trace. Each rounding sets a flag that programs look at, or that ends them if
 * they have asked for that.
 *
 *     struct { uint64_t a, b, result; } sum = {a, b, 0};
 *     struct floats kept = floats_begin(&sum);
 *     sum.result = .. only of what is in `sum`
 *     floats_end(&kept, &sum);
 *
 * Compilers do not know of the state: only values that go through memory which both ends get are
 * sure to be computed between them.
 */
#ifndef TRACE_FLOATS_H
#define TRACE_FLOATS_H

#include "base/macros.h"

#if defined(__x86_64__)

struct floats {
    uint32_t control; /* rounding, traps and flags */
};

ALWAYS_INLINE struct floats floats_begin(void *operands)
{
    static const uint32_t initial = 0x1f80; /* all traps are off */
    struct floats kept;
    __asm__ volatile("stmxcsr %0" : "=m"(kept.control));
    __asm__ volatile("ldmxcsr %0" : : "m"(initial), "r"(operands) : "memory");
    return kept;
}

ALWAYS_INLINE void floats_end(const struct floats *kept, void *operands)
{
    __asm__ volatile("ldmxcsr %0" : : "m"(kept->control), "r"(operands) : "memory");
}

#else

struct floats {
    uint64_t control, status; /* rounding and traps; flags */
};

ALWAYS_INLINE struct floats floats_begin(void *operands)
{
    struct floats kept;
    __asm__ volatile("mrs %0, fpcr" : "=r"(kept.control));
    __asm__ volatile("mrs %0, fpsr" : "=r"(kept.status));
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0), "r"(operands) : "memory");
    return kept;
}

ALWAYS_INLINE void floats_end(const struct floats *kept, void *operands)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(kept->control), "r"(operands) : "memory");
    __asm__ volatile("msr fpsr, %0" : : "r"(kept->status) : "memory");
}

#endif

#endif
