/* See tags.h. */
#include "hardened/tags.h"

#if defined(__aarch64__)

#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/atomic.h"
#include "os/os.h"
#include "os/syscall.h"

/* As in the kernel's headers; old ones lack some. */
enum {
    HWCAP2_HAS_TAGS = 1 << 18,
    PROTECTION_TAGS = 0x20,
    SET_TAGGED_ADDRESSES = 55, /* of prctl */
    TAGGED_ADDRESSES = 1,      /* may be given to system calls */
    FAULTS_AT_ONCE = 1 << 1,
    TAGS_DRAWN_SHIFT = 3, /* which tags the processor draws, a bit each: */
    ALL_BUT_THE_FIRST = 0xfffe
};

bool tags_on;

/* In glibc since 2.32: false as soon as there is a second thread. */
extern char __libc_single_threaded __attribute__((weak));

/* Off if other threads run already: they could pass no tagged pointer to a system call. */
void tags_start(void)
{
    const long mode = TAGGED_ADDRESSES | FAULTS_AT_ONCE | ALL_BUT_THE_FIRST << TAGS_DRAWN_SHIFT;
    bool alone = !&__libc_single_threaded || __libc_single_threaded;
    tags_on = alone && (getauxval(AT_HWCAP2) & HWCAP2_HAS_TAGS) &&
              system_call(SYS_prctl, SET_TAGGED_ADDRESSES, mode, 0, 0, 0, 0) == 0;
}

/* If the system refuses, all memory keeps tag 0. */
void tags_prepare(void *address, size_t size)
{
    const int protection = PROT_READ | PROT_WRITE | PROTECTION_TAGS;
    if (!tags_on)
        return;
    ATOMIC_ADD_RELAXED(&os_counts[OS_MPROTECT], 1);
    system_call(SYS_mprotect, (long)address, (long)size, protection, 0, 0, 0);
}

#endif
