/* Compiler vocabulary that every layer uses. */
#ifndef BASE_MACROS_H
#define BASE_MACROS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* A slow path: kept out of line so that the hit path around it stays one screen of straight code.
 */
#define SLOW_PATH __attribute__((noinline, cold))

/* For a hit path: starts at four cache lines, so that its speed depends less on the size of
 * the code before it (docs/decisions/thread.md). */
#define HOT_ENTRY __attribute__((aligned(256)))

/* Written by different threads: such objects get cache lines of their own (128: the adjacent-line
 * prefetcher of x86-64 works on pairs of 64-byte lines). */
#define CACHE_LINE 128
#define CACHE_ALIGNED __attribute__((aligned(CACHE_LINE)))

/* Makes the compiler forget what it knows of a value in a register. On a hit path this keeps it
 * from computing an address once for two uses: indexing twice is an instruction less. */
#define FORGET(x) __asm__("" : "+r"(x))

#define ARRAY_LENGTH(a) (sizeof(a) / sizeof((a)[0]))

/* The object that embeds `member` at `pointer`. */
#define CONTAINER_OF(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)
#define TIB ((size_t)1 << 40)

ALWAYS_INLINE size_t round_up(size_t value, size_t power_of_two)
{
    return (value + power_of_two - 1) & ~(power_of_two - 1);
}

ALWAYS_INLINE size_t round_down(size_t value, size_t power_of_two)
{
    return value & ~(power_of_two - 1);
}

ALWAYS_INLINE bool is_power_of_two(size_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

ALWAYS_INLINE size_t size_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

ALWAYS_INLINE size_t size_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Bytes from the address to the end of the `size` bytes at `start`; 0: it lies behind them. */
ALWAYS_INLINE size_t bytes_left(const char *start, size_t size, const char *address)
{
    size_t offset = (size_t)(address - start);
    return offset < size ? size - offset : 0;
}

#endif
