/* A system call on AArch64: syscall_x86_64.h says why the C library is not used. */
#ifndef OS_SYSCALL_AARCH64_H
#define OS_SYSCALL_AARCH64_H

#include <sys/syscall.h>

#include "base/macros.h"

ALWAYS_INLINE long system_call(long number, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory", "cc");
    return x0;
}

ALWAYS_INLINE void *thread_pointer(void)
{
    void *pointer;
    __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
    return pointer;
}

ALWAYS_INLINE void thread_pointer_prepare(void *pointer)
{
    (void)pointer; /* the thread's variables lie right behind it */
}

ALWAYS_INLINE long system_clone(
    long flags, void *stack, void (*run)(void), void *pointer, uint32_t *lives)
{
    register long x8 __asm__("x8") = SYS_clone;
    register long x0 __asm__("x0") = flags;
    register void *x1 __asm__("x1") = stack;
    register uint32_t *x2 __asm__("x2") = lives;
    register void *x3 __asm__("x3") = pointer;
    register uint32_t *x4 __asm__("x4") = lives;
    register void (*x16)(void) __asm__("x16") = run;
    __asm__ volatile("svc 0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, xzr\n\t"
                     "blr x16\n\t"
                     "mov x0, xzr\n\t"
                     "mov x8, %[exit]\n\t"
                     "svc 0\n"
                     "1:"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x16), [exit] "i"(SYS_exit)
                     : "memory", "cc");
    return x0;
}

ALWAYS_INLINE void cpu_relax(void)
{
    __asm__ volatile("yield");
}

/* A counter of time at a constant rate, the same on all processors. */
ALWAYS_INLINE uint64_t cpu_ticks(void)
{
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
}

#endif
