/* What every other part builds on: the program and how it fails, the time, memory from the kernel.
 */
#include "lab_internal.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct lab_program lab_program;

void lab_fail(const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    /* One line is printed: of threads that fail at once, the others wait for the first to exit. */
    static int failed;
    while (__atomic_exchange_n(&failed, 1, __ATOMIC_RELAXED)) {
        pause();
    }
    fprintf(stderr, "%s: %s\n", lab_program.workload, text);
    /* Other threads may be at work: their exit handlers and buffers are left alone. */
    _exit(1);
}

uint64_t lab_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void *lab_reserve(size_t bytes)
{
    /* Without MAP_NORESERVE a table larger than the memory is refused here, in a clear place. */
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        lab_fail("no memory for a table of %zu bytes: %s", bytes, strerror(errno));
    }
    return memory;
}

void lab_release(void *memory, size_t bytes)
{
    munmap(memory, bytes);
}

uint64_t lab_rss_kib(void)
{
    char text[128] = "";
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (length <= 0) {
        lab_fail("cannot read /proc/self/statm: %s", strerror(errno));
    }
    close(file);
    /* The second number is the resident set, in pages. */
    char *resident = strchr(text, ' ');
    uint64_t pages = resident ? strtoull(resident, NULL, 10) : 0;
    return pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

struct lab_operators lab_operators;

/* What the name means to the program: of a preloaded library, if it has it. */
static void *symbol(const char *name)
{
    void *address = dlsym(RTLD_DEFAULT, name);
    if (!address) {
        lab_fail("there is no %s", name);
    }
    return address;
}

void lab_operators_open(void)
{
    if (!dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL)) {
        lab_fail("cannot load the C++ library: %s", dlerror());
    }
    void *allocate = symbol("_Znwm"), *release = symbol("_ZdlPvm");
    memcpy(&lab_operators.allocate, &allocate, sizeof allocate);
    memcpy(&lab_operators.release, &release, sizeof release);
}
