/* Atomic access by the order it needs. A field that is read without its lock is declared with
 * plain type and only ever touched through these names, so that each use says its order. */
#ifndef BASE_ATOMIC_H
#define BASE_ATOMIC_H

#include "base/macros.h"

#define ATOMIC_LOAD_RELAXED(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define ATOMIC_LOAD_ACQUIRE(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define ATOMIC_STORE_RELAXED(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define ATOMIC_STORE_RELEASE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define ATOMIC_ADD_RELAXED(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)

/* Keeps the order of the writes before and after, as a child of fork sees them in its copy of the
 * memory: the copy is made between two instructions of each thread (docs/decisions/process.md),
 * so only the compiler has to keep it. */
#define KEEP_STORE_ORDER() __atomic_signal_fence(__ATOMIC_ACQ_REL)

/* Orders the reads before this and those after it, as a signal handler sees them. */
#define KEEP_LOAD_ORDER() __atomic_signal_fence(__ATOMIC_ACQUIRE)

/* For a counter with one writer at a time that others may read at any time: no locked instruction.
 */
#define COUNTER_ADD(p, v) ATOMIC_STORE_RELAXED((p), ATOMIC_LOAD_RELAXED(p) + (v))

/* A store or load of the hit paths, which has to be one instruction: a plain access, which the
 * compiler turns into one. ThreadSanitizer is told that the access is atomic. A store releases: not
 * at once, but before anybody relies on it (thread/idle.h). */
#if defined(__has_feature) && !defined(__SANITIZE_THREAD__)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1 /* as gcc does */
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define STORE_HOT(p, v) ATOMIC_STORE_RELEASE(p, v)
#define LOAD_HOT(p) ATOMIC_LOAD_RELAXED(p)
#else
#define STORE_HOT(p, v) ((void)(*(p) = (v)))
#define LOAD_HOT(p) (*(p))
#endif

/* Takes one off the counter; true: it is 0 now. On x86-64 this reads the flags of the subtraction,
 * which compilers do not do. */
ALWAYS_INLINE bool count_down_hot(uint64_t *counter)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    bool zero;
    __asm__("subq $1, %0" : "+m"(*counter), "=@ccz"(zero));
    return zero;
#else
    STORE_HOT(counter, LOAD_HOT(counter) - 1);
    return LOAD_HOT(counter) == 0;
#endif
}

#endif
