/* A system call on 64-bit RISC-V: syscall_x86_64.h says why the C library is not used. */
#ifndef OS_SYSCALL_RISCV64_H
#define OS_SYSCALL_RISCV64_H

#include <sys/syscall.h>

#include "base/macros.h"

ALWAYS_INLINE long system_call(long number, long a, long b, long c, long d, long e, long f)
{
    register long a7 __asm__("a7") = number;
    register long a0 __asm__("a0") = a;
    register long a1 __asm__("a1") = b;
    register long a2 __asm__("a2") = c;
    register long a3 __asm__("a3") = d;
    register long a4 __asm__("a4") = e;
    register long a5 __asm__("a5") = f;
    __asm__ volatile("ecall"
                     : "+r"(a0)
                     : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5)
                     : "memory");
    return a0;
}

ALWAYS_INLINE void *thread_pointer(void)
{
    void *pointer;
    __asm__("mv %0, tp" : "=r"(pointer));
    return pointer;
}

ALWAYS_INLINE void thread_pointer_prepare(void *pointer)
{
    (void)pointer; /* the thread's variables alone lie there */
}

ALWAYS_INLINE long system_clone(
    long flags, void *stack, void (*run)(void), void *pointer, uint32_t *lives)
{
    register long a7 __asm__("a7") = SYS_clone;
    register long a0 __asm__("a0") = flags;
    register void *a1 __asm__("a1") = stack;
    register uint32_t *a2 __asm__("a2") = lives;
    register void *a3 __asm__("a3") = pointer;
    register uint32_t *a4 __asm__("a4") = lives;
    register void (*t1)(void) __asm__("t1") = run;
    __asm__ volatile("ecall\n\t"
                     "bnez a0, 1f\n\t"
                     "mv s0, zero\n\t"
                     "jalr t1\n\t"
                     "mv a0, zero\n\t"
                     "li a7, %[exit]\n\t"
                     "ecall\n"
                     "1:"
                     : "+r"(a0)
                     : "r"(a7), "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(t1), [exit] "i"(SYS_exit)
                     : "memory");
    return a0;
}

/* The instruction `pause`, for assemblers that do not know it; others take it for a fence. */
ALWAYS_INLINE void cpu_relax(void)
{
    __asm__ volatile(".4byte 0x0100000f");
}

/* A counter of time at a constant rate, the same on all processors. */
ALWAYS_INLINE uint64_t cpu_ticks(void)
{
    uint64_t ticks;
    __asm__ volatile("rdtime %0" : "=r"(ticks));
    return ticks;
}

#endif
