/* What the hostile programs share: clocks, figures of this process, a generator, a watch that turns
 * a hang into a message, and the two lines that every program ends with: its figures, and proof of
 * who served it.
 *
 * Nothing here allocates, so that a figure taken between two calls is not disturbed by it.
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

/* The program cannot do its work on this machine: see SKIP_RETURN_CODE of CTest. */
#define SKIPPED 77

static inline void say(const char *text)
{
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written;
}

static inline void require_failed(const char *file, int line, const char *what)
{
    char text[300];
    snprintf(text, sizeof text, "%s:%d: failed: %s (errno %d)\n", file, line, what, errno);
    say(text);
    _exit(1);
}

#define REQUIRE(condition) ((condition) ? (void)0 : require_failed(__FILE__, __LINE__, #condition))

static inline _Noreturn void skip(const char *why)
{
    say(why);
    say("\n");
    _exit(SKIPPED);
}

static inline double clock_s(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline double wall_s(void)
{
    return clock_s(CLOCK_MONOTONIC);
}

/* Processor time of all threads, of this thread: what other programs do does not count. */
static inline double cpu_s(void)
{
    return clock_s(CLOCK_PROCESS_CPUTIME_ID);
}

static inline double thread_cpu_s(void)
{
    return clock_s(CLOCK_THREAD_CPUTIME_ID);
}

static inline void sleep_ms(unsigned ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&time, NULL);
}

/* The beginning of a file, as text. */
static inline void read_text(const char *path, char *text, size_t size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, size - 1);
    REQUIRE(length > 0);
    close(file);
    text[length] = '\0';
}

static inline double resident_mib(void)
{
    char text[256];
    read_text("/proc/self/statm", text, sizeof text);
    char *second = strchr(text, ' ');
    return (double)strtoul(second, NULL, 10) * (double)sysconf(_SC_PAGESIZE) / (double)MIB;
}

/* The most, since the program began: what getrusage tells has the parent's in it. */
static inline double peak_resident_mib(void)
{
    char text[4096];
    read_text("/proc/self/status", text, sizeof text);
    const char *line = strstr(text, "VmHWM:");
    REQUIRE(line != NULL);
    return (double)strtoul(line + strlen("VmHWM:"), NULL, 10) / (double)KIB;
}

/* Mappings of this process; the system allows it 65,530 unless told otherwise. */
static inline double mapping_count(void)
{
    char text[4096];
    unsigned lines = 0;
    ssize_t length;
    int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    REQUIRE(file >= 0);
    while ((length = read(file, text, sizeof text)) > 0) {
        for (ssize_t i = 0; i < length; i++) {
            lines += text[i] == '\n';
        }
    }
    close(file);
    return lines;
}

static inline double page_faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_minflt;
}

/* How often threads of this process slept for something, as for a lock. */
static inline double sleeps(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_nvcsw;
}

static __thread uint64_t random_state = 88172645463325252u;

static inline uint64_t random_next(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static inline size_t random_between(size_t low, size_t high)
{
    return low + (high > low ? random_next() % (high - low + 1) : 0);
}

static inline void *allocate(size_t size)
{
    void *block = malloc(size);
    REQUIRE(block != NULL);
    return block;
}

/* The argument as a number; every program knows how many it takes. */
static inline size_t argument(int argc, char **argv, int index)
{
    REQUIRE(index < argc);
    return strtoul(argv[index], NULL, 10);
}

/* Threads with little of the address space for their stack, for programs that start many. */
static inline void start_thread(pthread_t *thread, void *(*body)(void *), void *data, size_t stack)
{
    pthread_attr_t attributes;
    REQUIRE(pthread_attr_init(&attributes) == 0);
    REQUIRE(pthread_attr_setstacksize(&attributes, stack) == 0);
    int error = pthread_create(thread, &attributes, body, data);
    if (error == EAGAIN) {
        skip("the system does not allow so many threads");
    }
    REQUIRE(error == 0);
    pthread_attr_destroy(&attributes);
}

/* Limits what this process may have: "addresses" or "data", which is private writable memory;
 * "none" leaves it at what it was started under. */
static inline void limit_resource(const char *kind, size_t limit_mib)
{
    const struct rlimit limit = {limit_mib * MIB, limit_mib * MIB};
    if (strcmp(kind, "addresses") == 0) {
        REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
    } else if (strcmp(kind, "data") == 0) {
        REQUIRE(setrlimit(RLIMIT_DATA, &limit) == 0);
    } else {
        REQUIRE(strcmp(kind, "none") == 0);
    }
}

static const char *watched = "";

static inline void watch_barks(int signal_number)
{
    (void)signal_number;
    say("hang: ");
    say(watched);
    say("\n");
    _exit(99);
}

/* Ends the program with a message if it is still in `what` shortly before the runner would. */
static inline void watch(const char *what)
{
    watched = what;
    signal(SIGALRM, watch_barks);
    alarm(250);
}

/* One result, for the table of bounds. */
static inline void figure(const char *name, double value)
{
    char line[128];
    int length = snprintf(line, sizeof line, "figure %s %.3f\n", name, value);
    REQUIRE(write(STDOUT_FILENO, line, (size_t)length) == length);
}

/* Says which file the malloc of this process lies in, having asked it about a block. To be called
 * last. */
static inline void conclude(void)
{
    Dl_info info = {0};
    char line[4096];
    void *block = allocate(100);
    size_t (*usable_size)(const void *);
    *(void **)&usable_size = dlsym(RTLD_DEFAULT, "hakmem_usable_size");
    REQUIRE(usable_size == NULL || usable_size(block) >= 100);
    free(block);
    REQUIRE(dladdr(dlsym(RTLD_DEFAULT, "malloc"), &info) != 0);
    int length = snprintf(line, sizeof line, "served by %s\n", info.dli_fname);
    REQUIRE(write(STDOUT_FILENO, line, (size_t)length) == length);
}

#endif
