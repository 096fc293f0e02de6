/* System calls and instructions of the CPU, by choice of file. */
#ifndef OS_SYSCALL_H
#define OS_SYSCALL_H

#if defined(__x86_64__)
#include "os/syscall_x86_64.h"
#elif defined(__aarch64__)
#include "os/syscall_aarch64.h"
#else
#error "hakmem supports x86-64 and AArch64"
#endif

#endif
