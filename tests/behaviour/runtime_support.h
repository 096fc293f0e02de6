/* What the run-time tests share: clocks, memory figures of this process, a pattern that tells
 * whether a block was damaged, and a watchdog that turns a hang into a message.
 *
 * Nothing here allocates, so that a figure read between two allocations is not disturbed by it.
 */
#ifndef RUNTIME_SUPPORT_H
#define RUNTIME_SUPPORT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What CTest takes for "skipped" where a test sets SKIP_RETURN_CODE. */
#define RUNTIME_SKIPPED 77

static inline void say(const char *text)
{
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written;
}

static inline void runtime_fail(const char *file, int line, const char *what)
{
    char digits[16];
    int at = (int)sizeof digits;
    digits[--at] = '\0';
    do {
        digits[--at] = (char)('0' + line % 10);
        line /= 10;
    } while (line > 0);
    say(file);
    say(":");
    say(digits + at);
    say(": failed: ");
    say(what);
    say("\n");
    abort();
}

/* For places where cmocka's assertions cannot be used: children, handlers, constructors and all
 * threads but the first. Aborts, which the parent or CTest sees. */
#define REQUIRE(condition) ((condition) ? (void)0 : runtime_fail(__FILE__, __LINE__, #condition))

static inline double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Field `index` of /proc/self/statm in KiB: 0 is the address space, 1 the resident memory. */
static inline long statm_kib(int index)
{
    char text[256];
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) {
        close(file);
    }
    if (length <= 0) {
        return -1;
    }
    text[length] = '\0';
    char *at = text;
    long pages = strtol(at, &at, 10);
    while (index-- > 0) {
        pages = strtol(at, &at, 10);
    }
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static inline long resident_kib(void)
{
    return statm_kib(1);
}

static inline long mapped_kib(void)
{
    return statm_kib(0);
}

/* ---- What the hardened preset takes more -------------------------------------------------------
 *
 * For the bounds of tests that `make check-hardened` runs, too; docs/hardening.md says what for. */

/* What a thread that has used 16 sizes up to 32 KiB keeps while it waits: its quarantine, 512 KiB,
 * and of each size 30 KiB and a block to hand out next. */
#define HARDENED_THREAD_KIB 1280

/* Addresses of freed large blocks, and of big ones, that are not used again soon. */
#define HARDENED_WAITING_KIB (2 * 64 * 1024)

/* Slots are taken at random, so that few blocks of each class touch all pages of a slab. */
#define HARDENED_SCATTERED_KIB 2048

static inline bool is_hardened(void)
{
    const char *preset = getenv("HAKMEM_PRESET");
    return preset != NULL && strcmp(preset, "hardened") == 0;
}

/* So much more in the preset. */
static inline long hardened_kib(long more_kib)
{
    return is_hardened() ? more_kib : 0;
}

/* A small generator, one per thread: the tests must repeat exactly from a seed. */
static inline uint32_t random_next(uint32_t *state)
{
    uint32_t x = *state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    *state = x;
    return x;
}

/* Writes a pattern that depends on `tag` over the block: all of it up to 256 bytes, else both
 * ends and one byte of each 512, which finds any damage done by another block's owner. */
static inline void pattern_fill(void *block, size_t size, unsigned tag)
{
    unsigned char *bytes = block;
    if (size <= 256) {
        memset(bytes, (int)(tag & 0xff), size);
        return;
    }
    for (size_t at = 0; at < size; at += 512) {
        bytes[at] = (unsigned char)tag;
    }
    bytes[size - 1] = (unsigned char)tag;
}

static inline bool pattern_holds(const void *block, size_t size, unsigned tag)
{
    const unsigned char *bytes = block;
    size_t step = size <= 256 ? 1 : 512;
    for (size_t at = 0; at < size; at += step) {
        if (bytes[at] != (unsigned char)tag) {
            return false;
        }
    }
    return size == 0 || bytes[size - 1] == (unsigned char)tag;
}

/* What takes longer hangs: less than CTest waits, and more than a busy machine needs. */
enum { HANG_SECONDS = 250 };

static const char *watchdog_text = "";

static inline void watchdog_bark(int signal_number)
{
    (void)signal_number;
    say("hang: ");
    say(watchdog_text);
    say("\n");
    _exit(99);
}

/* Ends this process with status 99 and a message when it is still in `what` after `seconds`. The
 * next call replaces the last; 0 seconds ends the watch. Children do not inherit it. */
static inline void watchdog(unsigned seconds, const char *what)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = watchdog_bark;
    watchdog_text = what;
    sigaction(SIGALRM, &action, NULL);
    alarm(seconds);
}

/* The guarded process counts its steps here, in memory shared with its guard. */
static volatile unsigned *guard_steps;

static inline void guard_step(void)
{
    __atomic_fetch_add(guard_steps, 1, __ATOMIC_RELAXED);
}

static inline void guard_nap(void)
{
    const struct timespec nap = {.tv_nsec = 5000000};
    nanosleep(&nap, NULL);
}

/* Runs `body` in a child process with its own process group. Returns its exit status, 128 plus
 * the signal that ended it, or -1 after killing the group when no step was counted for
 * `stall_seconds`: a hang. For tests that fork, take signals or may wedge. */
static inline int run_guarded(void (*body)(void), unsigned stall_seconds)
{
    void *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED);
    guard_steps = shared;
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        const struct rlimit no_core = {0, 0};
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a guard that was killed takes it along */
        setrlimit(RLIMIT_CORE, &no_core);
        body();
        _exit(0);
    }
    int status = 0;
    unsigned last = 0;
    double deadline = seconds_now() + stall_seconds;
    pid_t ended;
    while ((ended = waitpid(child, &status, WNOHANG)) == 0) {
        if (*guard_steps != last) {
            last = *guard_steps;
            deadline = seconds_now() + stall_seconds;
        }
        if (seconds_now() > deadline) {
            say("hang: killed\n");
            kill(-child, SIGKILL);
            waitpid(child, &status, 0);
            break;
        }
        guard_nap();
    }
    kill(-child, SIGKILL); /* what the child left running, in case it crashed */
    munmap(shared, 4096);
    if (ended == 0) {
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Sizes that cross every tier, with the small ones most often. */
static inline size_t random_size(uint32_t *state)
{
    uint32_t r = random_next(state);
    uint32_t kind = r & 1023;
    r >>= 10;
    if (kind < 800) {
        return 1 + r % 512;
    }
    if (kind < 990) {
        return 1 + r % 8192;
    }
    if (kind < 1015) {
        return 1 + r % 32768;
    }
    if (kind < 1022) {
        return 1 + r % 300000;
    }
    return 1 + r % 3000000;
}

#endif
