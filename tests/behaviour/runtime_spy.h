/* The interface of the spy library (runtime_spy.c) to the program that watches with it. */
#ifndef RUNTIME_SPY_H
#define RUNTIME_SPY_H

#include <stdbool.h>

/* Values of keys below this number sit in the thread's own record; the C library allocates a
 * table for the others. */
#define SPY_FIRST_LEVEL_KEYS 32

struct spy_report {
    unsigned forbidden; /* calls of dlsym, dlopen, getenv, clock_gettime and stdio functions */
    const char *last_forbidden; /* the name of the last of them, or NULL */
    unsigned secure_getenv;
    unsigned setspecific;
    unsigned high_keys; /* of these, with a key that makes the C library allocate */
};

/* Starts or ends counting the calling thread's calls. */
__attribute__((weak)) void spy_watch(bool on);

/* The counts since the last report, of all threads; they must be quiet. */
__attribute__((weak)) struct spy_report spy_take_report(void);

#endif
