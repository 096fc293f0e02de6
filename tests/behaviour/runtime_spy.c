/* A library to be preloaded before the allocator, which counts the calls of functions that malloc
 * must not use, made by a thread while it is inside a watched call (behaviour 26).
 *
 * All of them forward to the C library, but those of keys and clocks allocate first: the C library
 * does so for high keys, and libraries that fake the time do. An allocator that calls these before
 * its heap exists recurses.
 */
#include "runtime_spy.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern char **environ;

static __thread bool watched;
static __thread unsigned nested;
static struct spy_report report;

void spy_watch(bool on)
{
    watched = on;
}

struct spy_report spy_take_report(void)
{
    struct spy_report taken = report;
    memset(&report, 0, sizeof report);
    return taken;
}

static void note(const char *name)
{
    if (watched && nested == 0) {
        __atomic_fetch_add(&report.forbidden, 1, __ATOMIC_RELAXED);
        report.last_forbidden = name;
    }
}

/* The C library's own dlsym: ours hides it, dlvsym is not used by anybody else here. */
static void *real_dlsym(void *handle, const char *name)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
    static void *(*real)(void *, const char *);
    for (size_t i = 0; real == NULL && i < sizeof versions / sizeof *versions; i++) {
        void *found = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
        memcpy(&real, &found, sizeof real);
    }
    return real == NULL ? NULL : real(handle, name);
}

/* Looks up the next definition of `name`, unwatched, because the lookup itself may allocate. */
static void *next_function(const char *name)
{
    nested++;
    void *found = real_dlsym(RTLD_NEXT, name);
    nested--;
    if (found == NULL) {
        abort();
    }
    return found;
}

#define DEFINE_NEXT(type, name)                                                                    \
    __typeof__(type) next;                                                                         \
    void *found = next_function(name);                                                             \
    memcpy(&next, &found, sizeof next)

/* The names below are the C library's, whose headers give the parameters their attributes. */
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

void *dlsym(void *restrict handle, const char *restrict name)
{
    note("dlsym");
    return real_dlsym(handle, name);
}

void *dlopen(const char *file, int mode)
{
    note("dlopen");
    DEFINE_NEXT(void *(*)(const char *, int), "dlopen");
    return next(file, mode);
}

static char *environment_value(const char *name)
{
    size_t length = strlen(name);
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') {
            return *entry + length + 1;
        }
    }
    return NULL;
}

char *getenv(const char *name)
{
    note("getenv");
    return environment_value(name);
}

char *secure_getenv(const char *name)
{
    if (watched && nested == 0) {
        __atomic_fetch_add(&report.secure_getenv, 1, __ATOMIC_RELAXED);
    }
    return environment_value(name);
}

int vfprintf(FILE *restrict stream, const char *restrict format, va_list list)
{
    note("vfprintf");
    DEFINE_NEXT(int (*)(FILE *, const char *, va_list), "vfprintf");
    return next(stream, format, list);
}

int fprintf(FILE *restrict stream, const char *restrict format, ...)
{
    note("fprintf");
    DEFINE_NEXT(int (*)(FILE *, const char *, va_list), "vfprintf");
    va_list list;
    va_start(list, format);
    int length = next(stream, format, list);
    va_end(list);
    return length;
}

int vsnprintf(char *restrict buffer, size_t size, const char *restrict format, va_list list)
{
    note("vsnprintf");
    DEFINE_NEXT(int (*)(char *, size_t, const char *, va_list), "vsnprintf");
    return next(buffer, size, format, list);
}

int snprintf(char *restrict buffer, size_t size, const char *restrict format, ...)
{
    note("snprintf");
    DEFINE_NEXT(int (*)(char *, size_t, const char *, va_list), "vsnprintf");
    va_list list;
    va_start(list, format);
    int length = next(buffer, size, format, list);
    va_end(list);
    return length;
}

FILE *fopen(const char *restrict path, const char *restrict mode)
{
    note("fopen");
    DEFINE_NEXT(FILE * (*)(const char *, const char *), "fopen");
    return next(path, mode);
}

int fputs(const char *restrict text, FILE *restrict stream)
{
    note("fputs");
    DEFINE_NEXT(int (*)(const char *, FILE *), "fputs");
    return next(text, stream);
}

size_t fwrite(const void *restrict data, size_t size, size_t count, FILE *restrict stream)
{
    note("fwrite");
    DEFINE_NEXT(size_t(*)(const void *, size_t, size_t, FILE *), "fwrite");
    return next(data, size, count, stream);
}

static void allocate(void)
{
    nested++;
    void *block = calloc(SPY_FIRST_LEVEL_KEYS, 16);
    free(block);
    nested--;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    note("clock_gettime");
    allocate();
    DEFINE_NEXT(int (*)(clockid_t, struct timespec *), "clock_gettime");
    return next(clock, now);
}

int pthread_key_create(pthread_key_t *key, void (*end)(void *))
{
    allocate();
    DEFINE_NEXT(int (*)(pthread_key_t *, void (*)(void *)), "pthread_key_create");
    return next(key, end);
}

int pthread_setspecific(pthread_key_t key, const void *value)
{
    if (watched && nested == 0) {
        __atomic_fetch_add(&report.setspecific, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&report.high_keys, key >= SPY_FIRST_LEVEL_KEYS, __ATOMIC_RELAXED);
    }
    allocate();
    DEFINE_NEXT(int (*)(pthread_key_t, const void *), "pthread_setspecific");
    return next(key, value);
}
