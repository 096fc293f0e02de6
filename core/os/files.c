/* os.h: files. */
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "os/syscall.h"

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

#define FILE_SIGNALS ((uint64_t)1 << (SIGPIPE - 1) | (uint64_t)1 << (SIGXFSZ - 1))

uint64_t os_begin_quiet(uint64_t *waiting)
{
    const uint64_t signals = FILE_SIGNALS;
    uint64_t kept = 0;
    system_call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&signals, (long)&kept, sizeof kept, 0, 0);
    system_call(SYS_rt_sigpending, (long)waiting, sizeof *waiting, 0, 0, 0, 0);
    return kept;
}

void os_end_quiet(uint64_t kept, uint64_t waiting, bool failed)
{
    const struct timespec no_time = {0, 0};
    uint64_t ours = FILE_SIGNALS & ~waiting;
    if (failed && ours)
        system_call(SYS_rt_sigtimedwait, (long)&ours, 0, (long)&no_time, sizeof ours, 0, 0);
    os_restore_signals(kept);
}

bool os_write_quietly(int fd, const char *text, size_t length)
{
    uint64_t waiting = 0, kept = os_begin_quiet(&waiting);
    bool whole = write_all(fd, text, length);
    os_end_quiet(kept, waiting, !whole);
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
