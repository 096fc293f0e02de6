/* shared_file.h for Linux. */
#include "trace/shared_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/atomic.h"
#include "os/fault.h"
#include "os/syscall.h"

static enum os_failure failure_of(long result)
{
    switch (-result) {
    case EEXIST:
        return OS_EXISTS;
    case EACCES:
    case EPERM:
    case EROFS:
        return OS_NO_ACCESS;
    case ENOENT:
    case ENOTDIR:
        return OS_NO_FOLDER;
    case ENOSPC:
    case EDQUOT:
        return OS_NO_SPACE;
    case EFBIG:
        return OS_FILE_LIMIT;
    case EMFILE:
    case ENFILE:
        return OS_NO_DESCRIPTOR;
    default:
        return OS_OTHER_FAILURE;
    }
}

const char *shared_file_reason(enum os_failure failure)
{
    switch (failure) {
    case OS_EXISTS:
        return "too many files of this name are there already: remove them, or record to an "
               "empty directory";
    case OS_NO_ACCESS:
        return "no permission";
    case OS_NO_FOLDER:
        return "there is no such folder";
    case OS_NO_SPACE:
        return "the disk is full";
    case OS_FILE_LIMIT:
        return "files may not become that long";
    case OS_NO_DESCRIPTOR:
        return "too many files are open";
    case OS_NOT_THERE:
        return "the file is not under this name any more";
    default:
        return "the system refuses";
    }
}

static long open_path(const char *path, int flags)
{
    return system_call(
        SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | flags, 0644,
        0, 0);
}

int shared_file_create(const char *path, enum os_failure *failure)
{
    long fd = open_path(path, O_CREAT | O_EXCL);
    *failure = fd < 0 ? failure_of(fd) : OS_NO_FAILURE;
    return fd < 0 ? -1 : (int)fd;
}

int shared_file_open(const char *path, struct os_file identity, enum os_failure *failure)
{
    long fd = open_path(path, O_NONBLOCK);
    *failure = fd >= 0 || fd == -ENOENT ? OS_NOT_THERE : failure_of(fd);
    if (fd < 0)
        return -1;
    struct os_file found = os_file_of((int)fd);
    if (found.device == identity.device && found.number == identity.number)
        return (int)fd;
    os_close((int)fd);
    return -1;
}

void shared_file_remove(const char *path)
{
    system_call(SYS_unlinkat, AT_FDCWD, (long)path, 0, 0, 0, 0);
}

/* For file systems that cannot allocate. */
static long write_zeros(int fd, size_t offset, size_t size)
{
    static const char zeros[512];
    while (size) {
        size_t piece = size_min(size, sizeof zeros);
        long written = system_call(SYS_pwrite64, fd, (long)zeros, (long)piece, (long)offset, 0, 0);
        if (written == -EINTR)
            continue;
        if (written <= 0)
            return written ? written : -ENOSPC;
        offset += (size_t)written;
        size -= (size_t)written;
    }
    return 0;
}

static long allocate(int fd, size_t offset, size_t size)
{
    long result;
    do
        result = system_call(SYS_fallocate, fd, 0, (long)offset, (long)size, 0, 0);
    while (result == -EINTR);
    bool unknown = result == -EOPNOTSUPP || result == -ENOSYS || result == -EPERM;
    return unknown ? write_zeros(fd, offset, size) : result;
}

/* Beyond the limit the kernel sends SIGXFSZ: it is blocked meanwhile, and consumed if it came. */
enum os_failure shared_file_allocate(int fd, size_t offset, size_t size)
{
    const uint64_t signal = (uint64_t)1 << (SIGXFSZ - 1);
    const struct timespec no_time = {0, 0};
    uint64_t kept = 0, waiting = 0;
    system_call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&signal, (long)&kept, sizeof kept, 0, 0);
    system_call(SYS_rt_sigpending, (long)&waiting, sizeof waiting, 0, 0, 0, 0);
    long result = allocate(fd, offset, size);
    if (result < 0 && !(waiting & signal))
        system_call(SYS_rt_sigtimedwait, (long)&signal, 0, (long)&no_time, sizeof signal, 0, 0);
    system_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&kept, 0, sizeof kept, 0, 0);
    return result < 0 ? failure_of(result) : OS_NO_FAILURE;
}

bool shared_file_map(int fd, size_t offset, size_t size, void *address)
{
    ATOMIC_ADD_RELAXED(&os_counts[OS_MMAP], 1);
    if (HAKMEM_FAULTS && fault_hook && fault_hook(OS_MMAP))
        return false;
    long result = system_call(
        SYS_mmap, (long)address, (long)size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
        (long)offset);
    return result == (long)address;
}
