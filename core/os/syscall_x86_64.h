/* A system call on x86-64: six arguments in registers, the result or a negative errno in rax.
 *
 * The C library's wrappers are not used because they set errno, may be cancellation points, and
 * are interposed by other preloaded libraries, which then call malloc; os/watched.h has an
 * exception.
 */
#ifndef OS_SYSCALL_X86_64_H
#define OS_SYSCALL_X86_64_H

#include <sys/syscall.h>

#include "base/macros.h"

ALWAYS_INLINE long system_call(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* From which the calling thread's variables are reached. */
ALWAYS_INLINE void *thread_pointer(void)
{
    void *pointer;
    __asm__("mov %%fs:0, %0" : "=r"(pointer));
    return pointer;
}

/* Fills in what the C library keeps at the thread pointer of a new thread, as far as functions read
 * it: the address of itself, twice, and the value that they compare at their end. */
ALWAYS_INLINE void thread_pointer_prepare(void *pointer)
{
    enum { SELF, SELF_AGAIN = 2, GUARD = 5 };
    uintptr_t *words = pointer;
    words[SELF] = words[SELF_AGAIN] = (uintptr_t)words;
    words[GUARD] = ((const uintptr_t *)thread_pointer())[GUARD];
}

/* Starts a thread that runs the function on the stack, whose end is given, and then ends. `lives`
 * is its id, and zero when it is gone. Returns its id, or a negative errno. */
ALWAYS_INLINE long system_clone(
    long flags, void *stack, void (*run)(void), void *pointer, uint32_t *lives)
{
    long result;
    register uint32_t *r10 __asm__("r10") = lives;
    register void *r8 __asm__("r8") = pointer;
    register void (*r9)(void) __asm__("r9") = run;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "call *%%r9\n\t"
                     "xor %%edi, %%edi\n\t"
                     "mov %[exit], %%eax\n\t"
                     "syscall\n"
                     "1:"
                     : "=a"(result)
                     : "a"(SYS_clone), "D"(flags), "S"(stack), "d"(lives), "r"(r10), "r"(r8),
                       "r"(r9), [exit] "i"(SYS_exit)
                     : "rcx", "r11", "memory");
    return result;
}

/* Tells the CPU that this is a spin loop. */
ALWAYS_INLINE void cpu_relax(void)
{
    __asm__ volatile("pause");
}

/* A counter of time at a constant rate, the same on all processors. */
ALWAYS_INLINE uint64_t cpu_ticks(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

#endif
