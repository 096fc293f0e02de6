/* os.h: the process, its threads, limits and clocks. */
#include "os/os.h"

#include <errno.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "os/syscall.h"

/* As in <linux/futex.h>, which a compiler for musl does not find. */
enum { FUTEX_WAIT_PRIVATE = 128, FUTEX_WAKE_PRIVATE = 129 };

size_t os_page_size(void)
{
    return getauxval(AT_PAGESZ);
}

unsigned os_cpu_count(void)
{
    /* As many as any kernel supports: it refuses shorter masks. */
    enum { CPUS_MAX = 8192 };
    uint64_t mask[CPUS_MAX / 64] = {0};
    long bytes = system_call(SYS_sched_getaffinity, 0, sizeof mask, (long)mask, 0, 0, 0);
    unsigned cpus = 0;
    for (long i = 0; i < bytes / 8; i++)
        cpus += bits_count(mask[i]);
    return cpus ? cpus : 1;
}

static size_t soft_limit(int resource)
{
    struct {
        uint64_t soft, hard;
    } limit = {0, 0};
    long result = system_call(SYS_prlimit64, 0, resource, 0, (long)&limit, 0, 0);
    return result == 0 && limit.soft != (uint64_t)-1 ? limit.soft : SIZE_MAX;
}

size_t os_address_space_limit(void)
{
    return soft_limit(RLIMIT_AS);
}

size_t os_data_limit(void)
{
    return soft_limit(RLIMIT_DATA);
}

size_t os_resident_peak(void)
{
    struct rusage usage = {.ru_maxrss = (long)(SIZE_MAX / 2 / KIB)}; /* if it fails */
    system_call(SYS_getrusage, RUSAGE_SELF, (long)&usage, 0, 0, 0, 0);
    return (size_t)usage.ru_maxrss * KIB;
}

bool os_is_privileged(void)
{
    return getauxval(AT_SECURE) != 0;
}

#ifdef __aarch64__
#define CLOCK_NAME "__kernel_clock_gettime"
#else
#define CLOCK_NAME "__vdso_clock_gettime"
#endif

/* The kernel's function, behind the C library's; NULL: it is asked by system calls. Const after
 * os_find_clock. */
static int (*read_clock)(clockid_t, struct timespec *);

/* In the image that the kernel maps into each process. The C library's own name may be another
 * preloaded library's: which may call malloc, or tell a false time. Addresses in the image are
 * those that it was linked for, mostly from 0 on; emulators put in those that it has. */
void os_find_clock(void)
{
    const char *image = (const char *)getauxval(AT_SYSINFO_EHDR), *names = NULL;
    const ElfW(Ehdr) *header = (const void *)image;
    const ElfW(Dyn) *entry = NULL;
    const ElfW(Sym) *symbol = NULL;
    uintptr_t shift = 0, bytes = 0;
    for (unsigned i = 0; header && i < header->e_phnum; i++) {
        const ElfW(Phdr) *part = (const ElfW(Phdr) *)(image + header->e_phoff) + i;
        if (part->p_type == PT_LOAD)
            shift = (uintptr_t)image + part->p_offset - part->p_vaddr;
        if (part->p_type == PT_DYNAMIC)
            entry = (const void *)(image + part->p_offset);
    }
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB)
            symbol = (const void *)(shift + entry->d_un.d_ptr);
        if (entry->d_tag == DT_STRTAB)
            names = (const char *)(shift + entry->d_un.d_ptr);
        if (entry->d_tag == DT_STRSZ)
            bytes = entry->d_un.d_val;
    }
    /* The names lie behind the symbols, and there may be another table in between. */
    for (; symbol && (const char *)symbol < names && !read_clock; symbol++)
        if (symbol->st_name < bytes && strcmp(names + symbol->st_name, CLOCK_NAME) == 0)
            read_clock = (int (*)(clockid_t, struct timespec *))(shift + symbol->st_value);
}

static struct timespec clock_now(clockid_t clock)
{
    struct timespec now = {0};
    if (LIKELY(read_clock != NULL))
        read_clock(clock, &now);
    else
        system_call(SYS_clock_gettime, clock, (long)&now, 0, 0, 0, 0);
    return now;
}

uint64_t os_clock_ms(void)
{
    struct timespec now = clock_now(CLOCK_MONOTONIC_COARSE);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t os_clock_ns(void)
{
    struct timespec now = clock_now(CLOCK_MONOTONIC);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t os_clock_unix_ns(void)
{
    struct timespec now = clock_now(CLOCK_REALTIME);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

bool os_random(void *bytes, size_t size)
{
    enum { NOT_BLOCKING = 1 };
    long result = system_call(SYS_getrandom, (long)bytes, (long)size, NOT_BLOCKING, 0, 0, 0);
    return result == (long)size;
}

size_t os_mapping_limit(void)
{
    enum { USUAL = 65530 };
    char digits[24] = "";
    size_t limit = 0;
    os_read_file("/proc/sys/vm/max_map_count", digits, sizeof digits - 1);
    for (const char *digit = digits; *digit >= '0' && *digit <= '9'; digit++)
        limit = limit * 10 + (size_t)(*digit - '0');
    return limit ? limit : USUAL;
}

void os_futex_wait(uint32_t *word, uint32_t expected)
{
    const struct timespec most = {.tv_nsec = 100000000};
    ATOMIC_ADD_RELAXED(&os_counts[OS_FUTEX], 1);
    system_call(SYS_futex, (long)word, FUTEX_WAIT_PRIVATE, (long)expected, (long)&most, 0, 0);
}

/* By a call that filters of system calls let pass. No thread wakes the word. */
void os_sleep_ms(unsigned ms)
{
    const struct timespec most = {ms / 1000, ms % 1000 * 1000000L};
    const uint32_t word = 0;
    ATOMIC_ADD_RELAXED(&os_counts[OS_FUTEX], 1);
    system_call(SYS_futex, (long)&word, FUTEX_WAIT_PRIVATE, 0, (long)&most, 0, 0);
}

void os_futex_wake(uint32_t *word)
{
    ATOMIC_ADD_RELAXED(&os_counts[OS_FUTEX], 1);
    system_call(SYS_futex, (long)word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

int os_process_id(void)
{
    return (int)system_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

uint32_t os_thread_id(void)
{
    return (uint32_t)system_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

bool os_thread_exists(uint32_t id)
{
    return system_call(SYS_tgkill, os_process_id(), id, 0, 0, 0, 0) != -ESRCH;
}

uint64_t os_block_signals(void)
{
    uint64_t all = UINT64_MAX, before = 0;
    system_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, sizeof all, 0, 0);
    return before;
}

void os_restore_signals(uint64_t blocked)
{
    system_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&blocked, 0, sizeof blocked, 0, 0);
}

/* The kernel copies the set of signals before it refuses the invalid action. Filters of system
 * calls let this call pass. */
bool os_is_readable(const void *address, size_t size)
{
    /* The page size is not asked for: it lies on the stack of the first thread. */
    enum { NO_ACTION = 0x7fffffff, SET_BYTES = sizeof(uint64_t), PAGE_BYTES = 4096 };
    uintptr_t at = round_down((uintptr_t)address, SET_BYTES), end = (uintptr_t)address + size;
    if (end < (uintptr_t)address)
        return false;
    for (; at < end; at = round_down(at, PAGE_BYTES) + PAGE_BYTES)
        if (system_call(SYS_rt_sigprocmask, NO_ACTION, (long)at, 0, SET_BYTES, 0, 0) != -EINVAL)
            return false;
    return true;
}
