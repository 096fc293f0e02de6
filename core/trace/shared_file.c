/* shared_file.h for Linux. */
#include "trace/shared_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/atomic.h"
#include "os/fault.h"
#include "os/syscall.h"

const char *shared_file_reason(int failure)
{
    switch (failure) {
    case EEXIST:
        return "too many files of this name exist: remove them, or record to an "
               "empty directory";
    case EACCES:
    case EPERM:
    case EROFS:
        return "no permission";
    case ENOENT:
    case ENOTDIR:
        return "there is no such folder";
    case ENOSPC:
    case EDQUOT:
        return "the disk is full";
    case EFBIG:
        return "files may not become that long";
    case EMFILE:
    case ENFILE:
        return "too many files are open";
    case ESTALE:
        return "the file is not under this name any more";
    default:
        return "the system refuses";
    }
}

static long open_path(const char *path, int flags)
{
    return system_call(
        SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | flags, 0600,
        0, 0);
}

int shared_file_create(const char *path, int *failure)
{
    long fd = open_path(path, O_CREAT | O_EXCL);
    *failure = fd < 0 ? (int)-fd : 0;
    return fd < 0 ? -1 : (int)fd;
}

int shared_file_open(const char *path, struct os_file identity, int *failure)
{
    long fd = open_path(path, O_NONBLOCK);
    *failure = fd >= 0 || fd == -ENOENT ? ESTALE : (int)-fd;
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

int shared_file_allocate(int fd, size_t offset, size_t size)
{
    uint64_t waiting = 0, kept = os_begin_quiet(&waiting);
    long result = allocate(fd, offset, size);
    os_end_quiet(kept, waiting, result < 0);
    return result < 0 ? (int)-result : 0;
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
