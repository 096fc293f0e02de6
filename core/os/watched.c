/* See watched.h. */
#include "os/watched.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "os/os.h"
#include "os/syscall.h"
#include "os/thread.h"

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

long watched_munmap(void *address, size_t size)
{
    int kept = errno;
    if (is_watched(MUNMAP))
        return os_thread_is_bare() ? -EPERM : library_answer(munmap(address, size), kept);
    return system_call(SYS_munmap, (long)address, (long)size, 0, 0, 0, 0);
}

long watched_mremap(void *address, size_t old_size, size_t new_size, int flags, void *target)
{
    int kept = errno;
    if (is_watched(MREMAP))
        return library_answer((long)mremap(address, old_size, new_size, flags, target), kept);
    return system_call(
        SYS_mremap, (long)address, (long)old_size, (long)new_size, flags, (long)target, 0);
}

long watched_madvise(void *address, size_t size, int advice)
{
    int kept = errno;
    if (is_watched(MADVISE))
        return os_thread_is_bare() ? -EPERM : library_answer(madvise(address, size, advice), kept);
    return system_call(SYS_madvise, (long)address, (long)size, advice, 0, 0, 0);
}
