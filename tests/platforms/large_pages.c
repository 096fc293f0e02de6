/* Pages of LARGE_PAGE_KIB on an x86-64 system that has pages of 4 KiB. Preloaded into a test.
 *
 * The functions that tell the page size are replaced. Then the allocator is held to it: a filter
 * traps each system call on memory that its code makes, told from those of the C library by the
 * address of the instruction, and the handler of the signal carries it out as a system with such
 * pages would: what is mapped starts at a multiple of the page and is as long as whole pages,
 * lengths are rounded up, and an address that is no multiple of the page is an error. Its
 * calls that open files are trapped, too: one of them tells the memory of the process in pages.
 *
 * What it cannot show: the kernel itself still counts and frees in pages of 4 KiB.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { SYSTEM_PAGE = 4096 };

static const size_t page = (size_t)LARGE_PAGE_KIB * 1024;

unsigned long getauxval(unsigned long type)
{
    unsigned long (*real)(unsigned long) =
        (unsigned long (*)(unsigned long))(uintptr_t)dlsym(RTLD_NEXT, "getauxval");
    return type == AT_PAGESZ ? page : real(type);
}

long sysconf(int name)
{
    long (*real)(int) = (long (*)(int))(uintptr_t)dlsym(RTLD_NEXT, "sysconf");
    return name == _SC_PAGESIZE ? (long)page : real(name);
}

int getpagesize(void)
{
    return (int)page;
}

/* The test framework catches this signal as a sign of a crash; here it is none. */
__sighandler_t signal(int number, __sighandler_t handler)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, before;
    if (number == SIGSYS)
        return SIG_DFL;
    return sigaction(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}

static bool is_misaligned(uint64_t address)
{
    return (address & (page - 1)) != 0;
}

static size_t whole_pages(size_t size)
{
    return (size + page - 1) & ~(page - 1);
}

/* Where the system's choice is no multiple of the page, takes addresses that hold one. */
static long map(const greg_t *registers)
{
    size_t size = whole_pages((size_t)registers[REG_RSI]);
    int protection = (int)registers[REG_RDX], flags = (int)registers[REG_R10];
    int fd = (int)registers[REG_R8];
    uint64_t hint = (uint64_t)registers[REG_RDI], offset = (uint64_t)registers[REG_R9];
    if (size < (size_t)registers[REG_RSI])
        return -ENOMEM;
    if (is_misaligned(offset) || (flags & MAP_FIXED && is_misaligned(hint)))
        return -EINVAL;
    char *start = mmap((void *)whole_pages(hint), size, protection, flags, fd, (off_t)offset);
    if (start == MAP_FAILED)
        return -errno;
    if (!is_misaligned((uintptr_t)start))
        return (long)start;
    munmap(start, size);
    start = mmap(NULL, size + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return -errno;
    char *aligned = (char *)whole_pages((uintptr_t)start);
    munmap(start, (size_t)(aligned - start));
    munmap(aligned + size, page - (size_t)(aligned - start));
    if (mmap(aligned, size, protection, flags | MAP_FIXED, fd, (off_t)offset) == MAP_FAILED) {
        int failure = errno;
        munmap(aligned, size);
        return -failure;
    }
    return (long)aligned;
}

static long move(const greg_t *registers)
{
    uint64_t target = registers[REG_R10] & MREMAP_FIXED ? (uint64_t)registers[REG_R8] : 0;
    if (is_misaligned(target))
        return -EINVAL;
    long result = syscall(
        SYS_mremap, registers[REG_RDI], whole_pages((size_t)registers[REG_RSI]),
        whole_pages((size_t)registers[REG_RDX]), registers[REG_R10], target);
    return result == -1 ? -errno : result;
}

/* The address space and the resident memory in such pages, in a file like the system's. */
static long count_in_pages(long fd)
{
    char text[128] = "", *end;
    syscall(SYS_read, fd, text, sizeof text - 1);
    syscall(SYS_close, fd);
    size_t mapped = strtoul(text, &end, 10), resident = strtoul(end, NULL, 10);
    int length = snprintf(
        text, sizeof text, "%zu %zu\n", mapped * SYSTEM_PAGE / page, resident * SYSTEM_PAGE / page);
    fd = syscall(SYS_memfd_create, "statm", MFD_CLOEXEC);
    if (fd < 0 || syscall(SYS_pwrite64, fd, text, length, 0) != length)
        return -EIO;
    return fd;
}

static long open_file(const greg_t *registers)
{
    const char *path = (const char *)registers[REG_RSI];
    long fd = syscall(SYS_openat, registers[REG_RDI], path, registers[REG_RDX], registers[REG_R10]);
    if (fd == -1)
        return -errno;
    return strcmp(path, "/proc/self/statm") == 0 ? count_in_pages(fd) : fd;
}

static void carry_out(int number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    int kept = errno;
    (void)number;
    long result;
    if (info->si_syscall == SYS_mmap) {
        result = map(registers);
    } else if (info->si_syscall == SYS_openat) {
        result = open_file(registers);
    } else if (is_misaligned((uint64_t)registers[REG_RDI])) {
        result = -EINVAL;
    } else if (info->si_syscall == SYS_mremap) {
        result = move(registers);
    } else {
        result = syscall(
            info->si_syscall, registers[REG_RDI], whole_pages((size_t)registers[REG_RSI]),
            registers[REG_RDX]);
        result = result == -1 ? -errno : result;
    }
    registers[REG_RAX] = result;
    errno = kept;
}

struct code {
    uintptr_t start, end;
};

/* The code of libhakmem.so, or of the program where the allocator is part of that. */
static int find_code(struct dl_phdr_info *object, size_t size, void *result)
{
    struct code *code = result;
    (void)size;
    bool is_library = strstr(object->dlpi_name, "libhakmem") != NULL;
    if (!is_library && code->end)
        return 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && segment->p_flags & PF_X) {
            code->start = object->dlpi_addr + segment->p_vaddr;
            code->end = code->start + segment->p_memsz;
        }
    }
    return is_library;
}

static void fail(const char *what)
{
    fprintf(stderr, "large_pages: %s\n", what);
    exit(2);
}

static void trap_calls_of(struct code code)
{
    enum { LOW = offsetof(struct seccomp_data, instruction_pointer), HIGH = LOW + 4 };
    /* The last two numbers of a jump: how many lines are left out if it is so, and if not. */
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 5, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_munmap, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mremap, 0, 6),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LOW),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)code.start, 0, 4),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)code.end, 3, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, HIGH),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(code.start >> 32), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        fail("the kernel allows no filter of system calls");
}

__attribute__((constructor)) static void start(void)
{
    struct code code = {0, 0};
    struct sigaction action = {.sa_sigaction = carry_out, .sa_flags = SA_SIGINFO};
    dl_iterate_phdr(find_code, &code);
    /* The filter can compare 32 bits at a time. */
    if (code.start >> 32 != code.end >> 32)
        fail("the code lies across a multiple of 4 GiB; run it again");
    sigaction(SIGSYS, &action, NULL);
    trap_calls_of(code);
}
