/* What the unit tests share: cmocka, a check that is cheap enough for every step of a model test,
 * random numbers, and a look at code that ends the process. */
#ifndef UNIT_UNIT_H
#define UNIT_UNIT_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* What takes longer hangs: less than CTest waits, and more than a busy machine needs. */
enum { HANG_SECONDS = 250 };

static pid_t unit_process;

__attribute__((constructor)) static void unit_remember_process(void)
{
    unit_process = getpid();
}

/* Fails the test; in other threads and in child processes, from where cmocka cannot be reached,
 * the process. */
__attribute__((noinline)) static void unit_check_failed(
    const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: check failed: %s\n", file, line, what);
    if (getpid() == unit_process && gettid() == unit_process)
        _fail(file, line);
    abort();
}

#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x))                                                                                  \
            unit_check_failed(#x, __FILE__, __LINE__);                                             \
    } while (0)

/* A test of the state before the first call defines it as _Fork, which calls no handlers: the
 * library's would initialise the allocator. */
#ifndef UNIT_FORK
#define UNIT_FORK fork
#endif

/* Random numbers with a fixed start (SplitMix64). */
static inline uint64_t unit_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* A number in [0, bound). */
static inline unsigned unit_below(uint64_t *state, unsigned bound)
{
    return (unsigned)(unit_random(state) % bound);
}

/* Runs `function` in a child process and returns its wait status; `output` receives what it wrote
 * to stderr. */
static inline int unit_run_child(
    void (*function)(void *), void *argument, char *output, size_t size)
{
    int pipe_ends[2], status = -1;
    size_t length = 0;
    ssize_t got;
    CHECK(pipe(pipe_ends) == 0);
    fflush(NULL);
    pid_t child = UNIT_FORK();
    CHECK(child >= 0);
    if (child == 0) {
        struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        dup2(pipe_ends[1], 2);
        close(pipe_ends[0]);
        function(argument);
        _exit(0);
    }
    close(pipe_ends[1]);
    while (length < size - 1 && (got = read(pipe_ends[0], output + length, size - 1 - length)) > 0)
        length += (size_t)got;
    output[length] = '\0';
    close(pipe_ends[0]);
    CHECK(waitpid(child, &status, 0) == child);
    return status;
}

/* The function must abort with exactly this line on stderr; the calls that led there follow it. */
static inline void unit_expect_abort(void (*function)(void *), void *argument, const char *line)
{
    char output[16384];
    int status = unit_run_child(function, argument, output, sizeof output);
    output[strcspn(output, "\n")] = '\0';
    assert_string_equal(output, line);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

/* The function must return, in a process of its own: it changes limits or state for good. */
static inline void unit_in_child(void (*function)(void *), void *argument)
{
    char output[4096];
    int status = unit_run_child(function, argument, output, sizeof output);
    if (status != 0)
        print_error("%s", output);
    assert_int_equal(status, 0);
}

/* AddressSanitizer would end the process another way. */
__attribute__((no_sanitize("address"))) static inline void unit_write_byte(void *address)
{
    /* cmocka would report it. */
    signal(SIGSEGV, SIG_DFL);
    *(volatile char *)address = 1;
}

/* Nobody may touch the byte. */
static inline void unit_expect_fault(void *address)
{
    char output[4096];
    int status = unit_run_child(unit_write_byte, address, output, sizeof output);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
}

/* True when the system's page that holds the address has memory. Of one that is simulated or
 * emulated, mincore tells of each part that is a page of the machine. */
static inline bool unit_is_resident(const void *address)
{
    enum { LONGEST = 64 * 1024, SHORTEST = 4096 };
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    unsigned char states[LONGEST / SHORTEST] = {0};
    CHECK(mincore((void *)((uintptr_t)address & ~(page - 1)), page, states) == 0);
    return memchr(states, 1, sizeof states) != NULL;
}

/* mlock and munlock: sanitizers have functions of these names that do nothing. */
static inline bool unit_lock(void *start, size_t bytes)
{
    return syscall(SYS_mlock, start, bytes) == 0;
}

static inline bool unit_unlock(void *start, size_t bytes)
{
    return syscall(SYS_munlock, start, bytes) == 0;
}

/* True when the bytes all have the value. */
static inline bool unit_all_bytes(const void *start, size_t size, unsigned char value)
{
    const unsigned char *bytes = start;
    return size == 0 || (bytes[0] == value && memcmp(bytes, bytes + 1, size - 1) == 0);
}

#endif
