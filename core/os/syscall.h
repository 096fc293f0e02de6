/* System calls and instructions of the CPU, by choice of file. */
#ifndef OS_SYSCALL_H
#define OS_SYSCALL_H

#if defined(__x86_64__)
#include "os/syscall_x86_64.h"
#elif defined(__aarch64__)
#include "os/syscall_aarch64.h"
#elif defined(__riscv)
#include "os/syscall_riscv64.h"
#else
#error "hakmem supports x86-64, AArch64 and 64-bit RISC-V"
#endif

#endif
