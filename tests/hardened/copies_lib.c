/* A library that copies in its constructor, which runs before that of a preloaded library, and
 * whose memmove, as that of some old ones, is made of memcpy. */
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

/* Whether the C library itself copies and sets bytes in constructors. */
bool early_copies_are_libc, early_sets_are_libc;

void *memmove(void *to, const void *from, size_t size)
{
    char *at = to;
    const char *read = from;
    if (at < read || at >= read + size)
        return memcpy(to, from, size);
    while (size--)
        at[size] = read[size];
    return to;
}

static sigjmp_buf back;
static volatile uintptr_t writer;

static void fault(int number, siginfo_t *info, void *context)
{
    ucontext_t *at = context;
    (void)number;
    (void)info;
#if defined(__x86_64__)
    writer = (uintptr_t)at->uc_mcontext.gregs[REG_RIP];
#elif defined(__riscv)
    writer = (uintptr_t)at->uc_mcontext.__gregs[REG_PC];
#else
    writer = (uintptr_t)at->uc_mcontext.pc;
#endif
    siglongjmp(back, 1);
}

static bool wrote_libc(void)
{
    Dl_info file, libc;
    return dladdr((void *)writer, &file) && dladdr((void *)abort, &libc) &&
           file.dli_fbase == libc.dli_fbase;
}

__attribute__((constructor)) static void start(void)
{
    struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO}, before;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *closed = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaction(SIGSEGV, &action, &before);
    if (!sigsetjmp(back, 1))
        memcpy(closed, &action, sizeof action);
    early_copies_are_libc = wrote_libc();
    if (!sigsetjmp(back, 1))
        memset(closed, 1, page);
    early_sets_are_libc = wrote_libc();
    sigaction(SIGSEGV, &before, NULL);
    munmap(closed, page);
}
