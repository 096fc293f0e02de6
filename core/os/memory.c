/* os.h: mappings, and what they cost. */
#include "os/os.h"

#include <errno.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/poison.h"
#include "base/policy.h"
#include "base/probe.h"
#include "os/fault.h"
#include "os/syscall.h"
#include "os/watched.h"

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
                        : watched_munmap(address, size);
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

static bool protect(void *address, size_t size, int protection)
{
    return !refused(OS_MPROTECT) &&
           system_call(SYS_mprotect, (long)address, (long)size, protection, 0, 0, 0) == 0;
}

/* Readable only in a second step: in the first, a system that locks all that is mapped would fill
 * the page tables of all of it. */
static void *reserve_at(void *hint, size_t size)
{
    void *address = map_at(hint, size, PROT_NONE, MAP_NORESERVE);
    if (!address || protect(address, size, PROT_READ))
        return address;
    os_discard(address, size);
    return NULL;
}

void *os_reserve(size_t size)
{
    return reserve_at(NULL, size);
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
        char *start = reserve_at(wanted, size);
        if (!start || start == wanted || !unmap(start, size, true))
            return start;
    }
    return os_reserve(size);
}

bool os_make_writable(void *address, size_t size)
{
    return protect(address, size, PROT_READ | PROT_WRITE);
}

bool os_make_inaccessible(void *address, size_t size)
{
    return protect(address, size, PROT_NONE);
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
    return !refused(OS_MADVISE) && watched_madvise(address, size, MADV_DONTNEED) == 0;
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
    long result = watched_mremap(address, old_size, new_size, MREMAP_MAYMOVE, NULL);
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
    long result =
        watched_mremap(address, old_size, new_size, MREMAP_MAYMOVE | MREMAP_FIXED, target);
    if (result == (long)target) {
        tell_unmapped(address, old_size);
        return OS_MOVED;
    }
    return result == -EPERM || result == -ENOSYS ? OS_MOVE_REFUSED : OS_MOVE_FAILED;
}
