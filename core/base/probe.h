/* Static probes: places where an outside observer, such as perf, bpftrace or a profiler in the
 * kernel, may watch the allocator.
 *
 * A probe is a `nop` and a note in the ELF file (.note.stapsdt) with its place, its name and the
 * registers of its arguments. An observer that attaches has the kernel put a breakpoint there.
 * Arguments are 64 bits each and lie in the platform's registers for arguments of functions: an
 * observer that does not read the note finds them all the same.
 *
 * Some probes have a semaphore, a counter of attached observers, which the kernel keeps: the cost
 * of computing arguments is then paid only while one is attached.
 *
 *     note  | sizes, type 3 | "stapsdt" | address, base, semaphore | provider, name, arguments |
 */
#ifndef BASE_PROBE_H
#define BASE_PROBE_H

#include "base/atomic.h"
#include "base/macros.h"

/* The profilers' contract for samples of memory, `otel_memory`. The kernel writes these; atomic
 * relaxed, any thread. */
extern uint16_t otel_memory_alloc_semaphore, otel_memory_free_semaphore, otel_memory_mmap_semaphore,
    otel_memory_munmap_semaphore;

#define PROBE_IS_ON(provider, name)                                                                \
    UNLIKELY(ATOMIC_LOAD_RELAXED(&provider##_##name##_semaphore) != 0)

#if defined(__x86_64__)
#define PROBE_REGISTER_1 "rdi"
#define PROBE_REGISTER_2 "rsi"
#define PROBE_REGISTER_3 "rdx"
#define PROBE_PREFIX "%%"
#elif defined(__riscv)
#define PROBE_REGISTER_1 "a0"
#define PROBE_REGISTER_2 "a1"
#define PROBE_REGISTER_3 "a2"
#define PROBE_PREFIX ""
#else
#define PROBE_REGISTER_1 "x0"
#define PROBE_REGISTER_2 "x1"
#define PROBE_REGISTER_3 "x2"
#define PROBE_PREFIX ""
#endif

#define PROBE_ARGUMENTS_1 "8@" PROBE_PREFIX PROBE_REGISTER_1
#define PROBE_ARGUMENTS_2 PROBE_ARGUMENTS_1 " 8@" PROBE_PREFIX PROBE_REGISTER_2
#define PROBE_ARGUMENTS_3 PROBE_ARGUMENTS_2 " 8@" PROBE_PREFIX PROBE_REGISTER_3

/* By the base, observers find the probe in a file whose addresses were changed after linking. */
#define PROBE_NOTE(provider, name, semaphore, arguments)                                           \
    "990: nop\n"                                                                                   \
    ".pushsection .note.stapsdt, \"\", \"note\"\n"                                                 \
    ".balign 4\n"                                                                                  \
    ".4byte 992f - 991f, 994f - 993f, 3\n"                                                         \
    "991: .asciz \"stapsdt\"\n"                                                                    \
    "992: .balign 4\n"                                                                             \
    "993: .8byte 990b, _.stapsdt.base, " semaphore "\n"                                            \
    ".asciz \"" provider "\"\n"                                                                    \
    ".asciz \"" name "\"\n"                                                                        \
    ".asciz \"" arguments "\"\n"                                                                   \
    "994: .balign 4\n"                                                                             \
    ".popsection\n"                                                                                \
    ".ifndef _.stapsdt.base\n"                                                                     \
    ".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"                    \
    ".weak _.stapsdt.base\n"                                                                       \
    ".hidden _.stapsdt.base\n"                                                                     \
    "_.stapsdt.base: .space 1\n"                                                                   \
    ".size _.stapsdt.base, 1\n"                                                                    \
    ".popsection\n"                                                                                \
    ".endif\n"

#define PROBE_ASM_1(provider, name, semaphore, a)                                                  \
    do {                                                                                           \
        register uint64_t probe_1 __asm__(PROBE_REGISTER_1) = (uint64_t)(a);                       \
        __asm__ volatile(PROBE_NOTE(provider, name, semaphore, PROBE_ARGUMENTS_1)::"r"(probe_1));  \
    } while (0)

#define PROBE_ASM_2(provider, name, semaphore, a, b)                                               \
    do {                                                                                           \
        uint64_t probe_a = (uint64_t)(a), probe_b = (uint64_t)(b);                                 \
        register uint64_t probe_1 __asm__(PROBE_REGISTER_1) = probe_a;                             \
        register uint64_t probe_2 __asm__(PROBE_REGISTER_2) = probe_b;                             \
        __asm__ volatile(                                                                          \
            PROBE_NOTE(provider, name, semaphore, PROBE_ARGUMENTS_2)::"r"(probe_1), "r"(probe_2)); \
    } while (0)

#define PROBE_ASM_3(provider, name, semaphore, a, b, c)                                            \
    do {                                                                                           \
        uint64_t probe_a = (uint64_t)(a), probe_b = (uint64_t)(b), probe_c = (uint64_t)(c);        \
        register uint64_t probe_1 __asm__(PROBE_REGISTER_1) = probe_a;                             \
        register uint64_t probe_2 __asm__(PROBE_REGISTER_2) = probe_b;                             \
        register uint64_t probe_3 __asm__(PROBE_REGISTER_3) = probe_c;                             \
        __asm__ volatile(                                                                          \
            PROBE_NOTE(provider, name, semaphore, PROBE_ARGUMENTS_3)::"r"(probe_1), "r"(probe_2),  \
            "r"(probe_3));                                                                         \
    } while (0)

/* Probes of our own; probes of the contract, which are skipped while no observer is attached. */
#define PROBE_1(name, ...) PROBE_ASM_1("hakmem", #name, "0", __VA_ARGS__)
#define PROBE_2(name, ...) PROBE_ASM_2("hakmem", #name, "0", __VA_ARGS__)
#define PROBE_OTEL(count, name, ...)                                                               \
    do {                                                                                           \
        if (PROBE_IS_ON(otel_memory, name))                                                        \
            PROBE_ASM_##count(                                                                     \
                "otel_memory", #name, "otel_memory_" #name "_semaphore", __VA_ARGS__);             \
    } while (0)

#endif
