/* os.h for Linux: the only system calls of the allocator. */
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/poison.h"
#include "base/policy.h"
#include "base/probe.h"
#include "os/fault.h"
#include "os/syscall.h"
#include "os/thread.h"

#ifndef MADV_POPULATE_WRITE /* glibc 2.35 */
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_WIPEONFORK /* glibc 2.27 */
#define MADV_WIPEONFORK 18
#endif
#ifndef MADV_GUARD_INSTALL /* glibc 2.41 */
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103
#endif

/* As in <linux/futex.h>, which a compiler for musl does not find. */
enum { FUTEX_WAIT_PRIVATE = 128, FUTEX_WAKE_PRIVATE = 129 };

uint64_t os_counts[OS_CALL_COUNT];

/* Release pairs with acquire in tell_mapped: what a thread did to memory before it unmapped it
 * comes before what another does to memory mapped there. The system sees to it, but
 * ThreadSanitizer does not know. */
static void count_system_call(enum os_call call)
{
    __atomic_fetch_add(&os_counts[call], 1, __ATOMIC_RELEASE);
}

/* Counts the call; true: a test wants it to fail. */
ALWAYS_INLINE bool refused(enum os_call call)
{
    count_system_call(call);
    return HAKMEM_FAULTS && fault_hook && fault_hook(call);
}

/* ---- Calls by which memory goes -------------------------------------------------------------- */

/* Libraries that register memory with a device (MPI, RDMA, GPUs) learn that it goes from jumps that
 * they write over the first instructions of the C library's functions. Such a function is called in
 * place of the system. One that is as it was at the start is not: it may be another preloaded
 * library's, which allocates or takes a lock of its own, and which the C library's malloc does not
 * call either. */
enum watched { MUNMAP, MREMAP, MADVISE, WATCHED_COUNT };

static const uintptr_t watched_code[WATCHED_COUNT] = {
    (uintptr_t)munmap, (uintptr_t)mremap, (uintptr_t)madvise};

/* The first bytes of each at the start; const after os_start. */
static uint64_t watched_start[WATCHED_COUNT][2];

/* Calls no memcpy: at the start it may be one of a library that was not relocated yet. */
static uint64_t watched_word(enum watched call, unsigned index)
{
    struct __attribute__((packed, may_alias)) word {
        uint64_t value;
    };
    return ((const struct word *)watched_code[call])[index].value;
}

void os_start(void)
{
    for (unsigned i = 0; i < WATCHED_COUNT * 2u && !watched_start[i / 2][i % 2]; i++)
        watched_start[i / 2][i % 2] = watched_word(i / 2, i % 2);
}

static bool is_watched(enum watched call)
{
    const uint64_t *start = watched_start[call];
    bool changed = watched_word(call, 0) != start[0] || watched_word(call, 1) != start[1];
    return UNLIKELY(changed) && start[0];
}

bool os_is_watched(void)
{
    return is_watched(MUNMAP) || is_watched(MREMAP) || is_watched(MADVISE);
}

/* The answer of a function of the C library as that of the system. */
static long library_answer(long result, int kept_errno)
{
    if (result == -1)
        result = -errno;
    errno = kept_errno;
    return result;
}

static long call_munmap(void *address, size_t size)
{
    int kept = errno;
    if (is_watched(MUNMAP))
        return os_thread_is_bare() ? -EPERM : library_answer(munmap(address, size), kept);
    return system_call(SYS_munmap, (long)address, (long)size, 0, 0, 0, 0);
}

static long call_mremap(void *address, size_t old_size, size_t new_size, int flags, void *target)
{
    int kept = errno;
    if (is_watched(MREMAP))
        return library_answer((long)mremap(address, old_size, new_size, flags, target), kept);
    return system_call(
        SYS_mremap, (long)address, (long)old_size, (long)new_size, flags, (long)target, 0);
}

static long call_madvise(void *address, size_t size, int advice)
{
    int kept = errno;
    if (is_watched(MADVISE))
        return os_thread_is_bare() ? -EPERM : library_answer(madvise(address, size, advice), kept);
    return system_call(SYS_madvise, (long)address, (long)size, advice, 0, 0, 0);
}

/* ---- Mappings -------------------------------------------------------------------------------- */

/* Tells observers of address space that came or went. */
static void *tell_mapped(void *address, size_t size)
{
    (void)ATOMIC_LOAD_ACQUIRE(&os_counts[OS_MUNMAP]);
    (void)ATOMIC_LOAD_ACQUIRE(&os_counts[OS_MREMAP]);
    PROBE_2(map, address, size);
    PROBE_OTEL(2, mmap, address, size);
    return address;
}

static void tell_unmapped(void *address, size_t size)
{
    PROBE_2(unmap, address, size);
    PROBE_OTEL(2, munmap, address, size);
}

static void *map_at(void *hint, size_t size, int protection, int flags)
{
    if (refused(OS_MMAP))
        return NULL;
    long result = system_call(
        SYS_mmap, (long)hint, (long)size, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return result < 0 && result > -4096 ? NULL : tell_mapped((void *)result, size);
}

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

static struct timespec clock_now(clockid_t clock)
{
    struct timespec now = {0};
    int kept = errno;
    if (UNLIKELY(os_thread_is_bare()))
        system_call(SYS_clock_gettime, clock, (long)&now, 0, 0, 0, 0);
    else
        clock_gettime(clock, &now);
    errno = kept;
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

/* A mapping that the system would not take back; the record lies at its start. */
struct leftover {
    struct leftover *next;
    size_t size;
};

static struct leftover *leftovers; /* atomic, any thread: release on push, acquire on taking all */

/* Calls of os_discard_leftovers to be let pass, since as many mappings were refused in vain.
 * Atomic relaxed, any thread. */
static size_t vain_calls;

static void leave(struct leftover *leftover)
{
    leftover->next = ATOMIC_LOAD_RELAXED(&leftovers);
    while (!__atomic_compare_exchange_n(
        &leftovers, &leftover->next, leftover, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        continue;
}

static bool unmap(void *address, size_t size, bool fresh)
{
    if (refused(OS_MUNMAP))
        return false;
    unpoison(address, size);
    long result = fresh ? system_call(SYS_munmap, (long)address, (long)size, 0, 0, 0, 0)
                        : call_munmap(address, size);
    if (result != 0)
        return false;
    tell_unmapped(address, size);
    if (UNLIKELY(ATOMIC_LOAD_RELAXED(&vain_calls)))
        ATOMIC_STORE_RELAXED(&vain_calls, 0);
    return true;
}

void os_discard(void *address, size_t size)
{
    struct leftover *leftover = address;
    if (unmap(address, size, true))
        return;
    leftover->size = size;
    leave(leftover);
}

void os_discard_leftovers(void)
{
    size_t vain = ATOMIC_LOAD_RELAXED(&vain_calls), tried = 0, refused = 0;
    if (vain) {
        ATOMIC_STORE_RELAXED(&vain_calls, vain - 1);
        return;
    }
    struct leftover *leftover = __atomic_exchange_n(&leftovers, NULL, __ATOMIC_ACQUIRE);
    for (struct leftover *next; leftover; leftover = next, tried++) {
        next = leftover->next;
        if (!unmap(leftover, leftover->size, true)) {
            leave(leftover);
            refused++;
        }
    }
    if (refused == tried)
        ATOMIC_STORE_RELAXED(&vain_calls, refused);
}

/* Maps more than the request and cuts the ends off. */
static void *map_and_trim(size_t size, size_t alignment)
{
    size_t padded = size + alignment - os_page_size();
    if (padded < size)
        return NULL;
    char *start = map_at(NULL, padded, PROT_READ | PROT_WRITE, 0);
    if (!start)
        return NULL;
    char *aligned = (char *)round_up((uintptr_t)start, alignment);
    if (aligned > start)
        os_discard(start, (size_t)(aligned - start));
    size_t rest = padded - (size_t)(aligned - start) - size;
    if (rest)
        os_discard(aligned + size, rest);
    return aligned;
}

static bool is_misaligned(const void *address, size_t alignment)
{
    return ((uintptr_t)address & (alignment - 1)) != 0;
}

void *os_map(size_t size, size_t alignment, void *hint)
{
    void *address = map_at(hint, size, PROT_READ | PROT_WRITE, 0);
    if (!is_misaligned(address, alignment))
        return address;
    os_discard(address, size);
    /* Addresses below are mostly free, since the system maps from above. So no moment takes more
     * than the request, which matters if locked memory is limited. */
    void *below = (void *)round_down((uintptr_t)address, alignment);
    address = map_at(below, size, PROT_READ | PROT_WRITE, 0);
    if (!is_misaligned(address, alignment))
        return address;
    os_discard(address, size);
    return map_and_trim(size, alignment);
}

void *os_reserve(size_t size)
{
    return map_at(NULL, size, PROT_READ, MAP_NORESERVE);
}

void *os_reserve_scattered(size_t size, const void *near)
{
    enum { TRIES = 4, PART = 32 };
    size_t page = os_page_size(), pages = (uintptr_t)near / PART / page;
    for (int i = 0; i < TRIES && pages; i++) {
        uint64_t random = 0;
        if (!os_random(&random, sizeof random))
            random = os_clock_ns() * 0x9e3779b97f4a7c15u >> 16;
        char *wanted = (char *)round_down((uintptr_t)near, page) - random % pages * page;
        char *start = map_at(wanted, size, PROT_READ, MAP_NORESERVE);
        if (!start || start == wanted || !unmap(start, size, true))
            return start;
    }
    return os_reserve(size);
}

bool os_make_writable(void *address, size_t size)
{
    return !refused(OS_MPROTECT) &&
           system_call(SYS_mprotect, (long)address, (long)size, PROT_READ | PROT_WRITE, 0, 0, 0) ==
               0;
}

bool os_make_inaccessible(void *address, size_t size)
{
    return !refused(OS_MPROTECT) &&
           system_call(SYS_mprotect, (long)address, (long)size, PROT_NONE, 0, 0, 0) == 0;
}

/* Memory goes by a call that is not watched. */
static void tell_watchers(void *address, size_t size)
{
    if (os_is_watched())
        os_purge(address, size);
}

/* Replaces an existing mapping. */
static bool map_over(void *address, size_t size, int protection, int flags)
{
    tell_watchers(address, size);
    return !refused(OS_MMAP) &&
           system_call(
               SYS_mmap, (long)address, (long)size, protection,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | flags, -1, 0) == (long)address;
}

bool os_make_untouchable(void *address, size_t size)
{
    return map_over(address, size, PROT_NONE, MAP_NORESERVE);
}

bool os_map_anew(void *address, size_t size)
{
    return map_over(address, size, PROT_READ | PROT_WRITE, 0);
}

bool os_unmap(void *address, size_t size)
{
    return unmap(address, size, false);
}

static bool advise_range(void *address, size_t size, int advice)
{
    return !refused(OS_MADVISE) &&
           system_call(SYS_madvise, (long)address, (long)size, advice, 0, 0, 0) == 0;
}

bool os_purge(void *address, size_t size)
{
    PROBE_2(purge, address, size);
    return !refused(OS_MADVISE) && call_madvise(address, size, MADV_DONTNEED) == 0;
}

bool os_guard(void *address, size_t size)
{
    return advise_range(address, size, MADV_GUARD_INSTALL);
}

bool os_unguard(void *address, size_t size)
{
    return advise_range(address, size, MADV_GUARD_REMOVE);
}

void *os_map_wiped(size_t size)
{
    void *address = map_at(NULL, size, PROT_READ | PROT_WRITE, 0);
    if (address)
        advise_range(address, round_up(size, os_page_size()), MADV_WIPEONFORK);
    return address;
}

/* Advice that the allocator can do without: filters of system calls kill for what they do not know.
 */
static void hint(void *address, size_t size, int advice)
{
    if (POLICY(huge_pages))
        advise_range(address, size, advice);
}

void os_populate(void *address, size_t size)
{
    hint(address, size, MADV_POPULATE_WRITE);
}

bool os_gives_huge_pages(void)
{
    enum { UNKNOWN, GIVES, GIVES_NOT };
    static unsigned known; /* atomic relaxed, any thread */
    unsigned state = ATOMIC_LOAD_RELAXED(&known);
    if (state == UNKNOWN) {
        char setting[] = "/sys/kernel/mm/transparent_hugepage/enabled"; /* [always] madvise never */
        size_t length = os_read_piece(setting, 0, setting, sizeof setting);
        state = length && setting[0] == '[' ? GIVES : GIVES_NOT;
        ATOMIC_STORE_RELAXED(&known, state);
    }
    return state == GIVES;
}

void os_advise_huge_pages(void *address, size_t size, bool wanted)
{
    hint(address, size, wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

size_t os_resident_bytes(void *address, size_t size)
{
    unsigned char state[512];
    size_t page = os_page_size(), resident = 0;
    for (size_t done = 0, piece; done < size; done += piece) {
        piece = size_min(size - done, sizeof state * page);
        long result =
            system_call(SYS_mincore, (long)address + (long)done, (long)piece, (long)state, 0, 0, 0);
        if (result == -ENOMEM) /* not mapped any more */
            continue;
        for (size_t i = 0; i < piece / page; i++)
            resident += result < 0 || (state[i] & 1) ? page : 0;
    }
    return resident;
}

bool os_is_one_mapping(void *address, size_t size)
{
    /* All addresses but a page: there is no room for that, and so the system refuses, for another
     * reason than that it finds several mappings before. As realloc asks, since filters of system
     * calls may know no other form; and not if even that may be unknown to them. */
    size_t all = (size_t)2 << (63 - __builtin_clzl(getauxval(AT_RANDOM)));
    return !POLICY(huge_pages) ||
           system_call(
               SYS_mremap, (long)address, (long)size, (long)(all - os_page_size()), MREMAP_MAYMOVE,
               0, 0) != -EFAULT;
}

enum os_move_result os_resize(void *address, size_t old_size, size_t new_size)
{
    if (refused(OS_MREMAP))
        return OS_MOVE_REFUSED;
    long result = system_call(SYS_mremap, (long)address, (long)old_size, (long)new_size, 0, 0, 0);
    if (result != (long)address)
        return result == -EFAULT ? OS_MOVE_FAILED : OS_MOVE_REFUSED;
    tell_mapped((char *)address + old_size, new_size - old_size);
    return OS_MOVED;
}

void *os_relocate(void *address, size_t old_size, size_t new_size)
{
    if (refused(OS_MREMAP))
        return NULL;
    unpoison(address, old_size);
    long result = call_mremap(address, old_size, new_size, MREMAP_MAYMOVE, NULL);
    if (result < 0 && result > -4096)
        return NULL;
    size_t kept = result == (long)address ? old_size : 0;
    if (!kept)
        tell_unmapped(address, old_size);
    tell_mapped((char *)result + kept, new_size - kept);
    return (void *)result;
}

enum os_move_result os_move(void *address, size_t old_size, void *target, size_t new_size)
{
    if (refused(OS_MREMAP))
        return OS_MOVE_REFUSED;
    unpoison(address, old_size);
    long result = call_mremap(address, old_size, new_size, MREMAP_MAYMOVE | MREMAP_FIXED, target);
    if (result == (long)target) {
        tell_unmapped(address, old_size);
        return OS_MOVED;
    }
    return result == -EPERM || result == -ENOSYS ? OS_MOVE_REFUSED : OS_MOVE_FAILED;
}

void os_futex_wait(uint32_t *word, uint32_t expected)
{
    const struct timespec most = {.tv_nsec = 100000000};
    count_system_call(OS_FUTEX);
    system_call(SYS_futex, (long)word, FUTEX_WAIT_PRIVATE, (long)expected, (long)&most, 0, 0);
}

/* By a call that filters of system calls let pass. No thread wakes the word. */
void os_sleep_ms(unsigned ms)
{
    const struct timespec most = {ms / 1000, ms % 1000 * 1000000L};
    const uint32_t word = 0;
    count_system_call(OS_FUTEX);
    system_call(SYS_futex, (long)&word, FUTEX_WAIT_PRIVATE, 0, (long)&most, 0, 0);
}

void os_futex_wake(uint32_t *word)
{
    count_system_call(OS_FUTEX);
    system_call(SYS_futex, (long)word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

static bool write_all(int fd, const char *text, size_t length)
{
    while (length) {
        long written = system_call(SYS_write, fd, (long)text, (long)length, 0, 0, 0);
        if (written == -EINTR)
            continue;
        if (written <= 0)
            return false;
        text += written;
        length -= (size_t)written;
    }
    return true;
}

void os_write(int fd, const char *text, size_t length)
{
    write_all(fd, text, length);
}

/* The kernel sends the two signals to the writing thread, which blocks them, and consumes those
 * that came meanwhile. */
bool os_write_quietly(int fd, const char *text, size_t length)
{
    const uint64_t signals = (uint64_t)1 << (SIGPIPE - 1) | (uint64_t)1 << (SIGXFSZ - 1);
    const struct timespec no_time = {0, 0};
    uint64_t kept = 0, waiting = 0;
    system_call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&signals, (long)&kept, sizeof kept, 0, 0);
    system_call(SYS_rt_sigpending, (long)&waiting, sizeof waiting, 0, 0, 0, 0);
    bool whole = write_all(fd, text, length);
    uint64_t ours = signals & ~waiting;
    if (!whole && ours)
        system_call(SYS_rt_sigtimedwait, (long)&ours, 0, (long)&no_time, sizeof ours, 0, 0);
    system_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&kept, 0, sizeof kept, 0, 0);
    return whole;
}

struct os_file os_file_of(int fd)
{
    struct stat status;
    if (system_call(SYS_fstat, fd, (long)&status, 0, 0, 0, 0) != 0)
        return (struct os_file){0, 0};
    return (struct os_file){status.st_dev, status.st_ino};
}

/* Takes a high number: programs may rely on the next free number, or take one of their choice, as
 * shells do with 10 and 255. The limit on open files may be low. */
int os_duplicate(int fd)
{
    for (int least = 1000; least >= 10; least /= 10) {
        long result = system_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, least, 0, 0, 0);
        if (result >= 0)
            return (int)result;
    }
    return -1;
}

/* 0 at the end of the file, and when it cannot be read. */
static size_t read_once(int fd, char *buffer, size_t capacity)
{
    long bytes;
    do
        bytes = system_call(SYS_read, fd, (long)buffer, (long)capacity, 0, 0, 0);
    while (bytes == -EINTR);
    return bytes < 0 ? 0 : (size_t)bytes;
}

size_t os_read(int fd, char *buffer, size_t capacity)
{
    size_t length = 0, bytes;
    while (length < capacity && (bytes = read_once(fd, buffer + length, capacity - length)) != 0)
        length += bytes;
    return length;
}

static long open_to_read(const char *path)
{
    /* A FIFO, for instance, must not keep the program waiting. */
    const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    return system_call(SYS_openat, AT_FDCWD, (long)path, flags, 0, 0, 0);
}

size_t os_read_file(const char *path, char *buffer, size_t capacity)
{
    long fd = open_to_read(path);
    size_t length = fd < 0 ? 0 : os_read((int)fd, buffer, capacity);
    if (fd >= 0)
        os_close((int)fd);
    return length;
}

size_t os_read_piece(const char *path, size_t from, char *buffer, size_t capacity)
{
    long fd = open_to_read(path), bytes;
    if (fd < 0)
        return 0;
    do
        bytes = system_call(SYS_pread64, fd, (long)buffer, (long)capacity, (long)from, 0, 0);
    while (bytes == -EINTR);
    os_close((int)fd);
    return bytes < 0 ? 0 : (size_t)bytes;
}

/* In a user namespace without the superuser, his files seem to be nobody's. Programs cannot raise
 * privileges there that count outside. */
static bool is_superusers(const struct stat *status)
{
    enum { SUPERUSER = 0, NOBODY = 65534 };
    return status->st_uid == SUPERUSER || (status->st_uid == NOBODY && !os_is_privileged());
}

int os_open_trusted(const char *path, size_t *size)
{
    struct stat status = {0};
    long fd = open_to_read(path);
    if (fd < 0)
        return OS_NO_FILE;
    bool known = system_call(SYS_fstat, fd, (long)&status, 0, 0, 0, 0) == 0;
    if (known && S_ISREG(status.st_mode) && is_superusers(&status) &&
        !(status.st_mode & (S_IWGRP | S_IWOTH))) {
        *size = (size_t)status.st_size;
        return (int)fd;
    }
    os_close((int)fd);
    return OS_UNTRUSTED;
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

size_t os_read_link(const char *path, char *buffer, size_t capacity)
{
    long bytes =
        system_call(SYS_readlinkat, AT_FDCWD, (long)path, (long)buffer, (long)capacity, 0, 0);
    return bytes < 0 ? 0 : (size_t)bytes;
}

enum { NULL_DEVICE = 1 << 8 | 3 }; /* major and minor number of /dev/null */

/* Opens a file to write to. Neither this nor a write to it waits for a reader. */
static long open_to_write(const char *path, int flags, int mode)
{
    const int always = O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    return system_call(SYS_openat, AT_FDCWD, (long)path, flags | always, mode, 0, 0);
}

/* Whether a link belongs to the user: another user may have put one at our path. */
static bool is_own_link(const char *path, uid_t user)
{
    struct stat status = {0};
    long result =
        system_call(SYS_newfstatat, AT_FDCWD, (long)path, (long)&status, AT_SYMLINK_NOFOLLOW, 0, 0);
    return result == 0 && S_ISLNK(status.st_mode) && status.st_uid == user;
}

/* True if an existing file may be overwritten: the null device, or a file of the user's own under
 * this name alone, which no other user can have put here. */
static bool may_overwrite(int fd, uid_t user)
{
    struct stat status = {0};
    if (system_call(SYS_fstat, fd, (long)&status, 0, 0, 0, 0) != 0)
        return false;
    if (S_ISCHR(status.st_mode))
        return status.st_rdev == NULL_DEVICE;
    return S_ISREG(status.st_mode) && status.st_uid == user && status.st_nlink <= 1 &&
           system_call(SYS_ftruncate, fd, 0, 0, 0, 0, 0) == 0;
}

int os_create_file(const char *path, int mode)
{
    uid_t user = (uid_t)system_call(SYS_geteuid, 0, 0, 0, 0, 0, 0);
    long fd = open_to_write(path, O_CREAT | O_EXCL, mode);
    if (fd != -EEXIST)
        return fd < 0 ? -1 : (int)fd;
    fd = open_to_write(path, O_NOFOLLOW, mode);
    if (fd == -ELOOP && is_own_link(path, user))
        fd = open_to_write(path, O_CREAT, mode);
    if (fd >= 0 && !may_overwrite((int)fd, user)) {
        os_close((int)fd);
        return -1;
    }
    return fd < 0 ? -1 : (int)fd;
}

void os_close(int fd)
{
    system_call(SYS_close, fd, 0, 0, 0, 0, 0);
}

int os_process_id(void)
{
    return (int)system_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

uint32_t os_thread_id(void)
{
    return (uint32_t)system_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

bool os_thread_exists(int process, uint32_t id)
{
    return system_call(SYS_tgkill, process, id, 0, 0, 0, 0) != -ESRCH;
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
