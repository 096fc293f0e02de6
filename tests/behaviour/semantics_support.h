/* Owns the few helpers that the semantics tests share: patterns in memory, the size of this
 * process, system calls that fail on demand, and checks inside a forked child.
 *
 * Nothing here allocates, so that a helper never disturbs what a test measures. It must be the
 * first header of a test, because it chooses the feature level and gives cmocka what it needs.
 */
#ifndef SEMANTICS_SUPPORT_H
#define SEMANTICS_SUPPORT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hakmem/hakmem.h>

/* The C library no longer declares it, but old programs call it. */
extern void cfree(void *block);

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)
#define TIB ((size_t)1 << 40)

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* A value that no call sets, to see that errno was left alone. */
#define ERRNO_MARK 4242

/* cmocka's assertions jump back into the runner, which a forked child must not do: it would run
 * the rest of the suite a second time. */
#define CHILD_CHECK(condition)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            dprintf(2, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno);           \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* Hides a value from the compiler, which would otherwise warn about, or fold, impossible sizes. */
static inline size_t opaque(size_t value)
{
    volatile size_t hidden = value;
    return hidden;
}

/* One byte of a pattern in which neither a shift nor a wrong seed goes unnoticed. */
static inline unsigned char pattern_byte(size_t index, unsigned seed)
{
    return (unsigned char)((index * 131u + (index >> 8) * 29u + seed * 17u + 1u) & 0xff);
}

static inline void pattern_fill(void *block, size_t size, unsigned seed)
{
    unsigned char *bytes = block;
    for (size_t i = 0; i < size; i++) {
        bytes[i] = pattern_byte(i, seed);
    }
}

static inline bool pattern_holds(const void *block, size_t size, unsigned seed)
{
    const unsigned char *bytes = block;
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != pattern_byte(i, seed)) {
            return false;
        }
    }
    return true;
}

static inline bool is_zero(const void *block, size_t size)
{
    const unsigned char *bytes = block;
    return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

static inline bool is_aligned(const void *block, size_t alignment)
{
    return ((uintptr_t)block & (alignment - 1)) == 0;
}

/* Bytes of address space (field 0) or of resident memory (field 1) of this process. */
static inline size_t process_bytes(int field)
{
    char text[256];
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof(text) - 1);
    if (file >= 0) {
        close(file);
    }
    if (length <= 0) {
        return 0;
    }
    text[length] = '\0';
    char *cursor = text;
    size_t pages = strtoul(cursor, &cursor, 10);
    if (field == 1) {
        pages = strtoul(cursor, &cursor, 10);
    }
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static inline size_t virtual_bytes(void)
{
    return process_bytes(0);
}

static inline size_t resident_bytes(void)
{
    return process_bytes(1);
}

/* From now on every system call `number` of this process fails with `error`. Only ever called in
 * a forked child, because there is no way back. False where the kernel refuses filters. */
static inline bool fail_syscall(long number, int error)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((uint32_t)error & SECCOMP_RET_DATA)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = COUNT_OF(rules), .filter = rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

/* Exit status of a child that could not do its work here, as Automake and CTest know it. */
#define CHILD_SKIPPED 77

/* Runs `body` in a forked child and asserts that it came to its end. */
static inline void run_in_child(void (*body)(void))
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(250); /* of 300 that CTest waits */
        body();
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_SKIPPED) {
        skip();
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* The link to the library must be real, or the tests would measure another malloc. */
static inline int library_is_linked(void)
{
    return strcmp(hakmem_version(), HAKMEM_VERSION) == 0 ? 0 : 1;
}

#endif
