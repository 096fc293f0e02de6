/* Where the cycles of slow paths go: with the option `cycles` each piece of work between two time
 * stamps, a *span*, is counted by its kind, for malloc and free apart.
 *
 *     malloc  |-- call ------------------------------------------|
 *                    |-- refill from bins ----------|
 *                         |-- lock wait --|  |-- fresh slab --|
 *
 * A span's own time is what is not in spans inside it, so that own times add up to all of it. Hit
 * paths have no spans, and a slow path has a branch for each while the option is off.
 *
 * Any thread; counters are atomic, in a few copies.
 */
#ifndef OS_CYCLES_H
#define OS_CYCLES_H

#include "base/macros.h"
#include "base/policy.h"

enum cycles_kind {
    CYCLES_CALL,       /* all of a call of malloc or free that no magazine served at once */
    CYCLES_FIRST_CALL, /* a thread comes by a heap */
    CYCLES_REFILL_TRANSFER,
    CYCLES_REFILL_BINS,
    CYCLES_FRESH_SLAB,
    CYCLES_FLUSH,  /* a batch from a magazine into transfer caches or bins */
    CYCLES_DRAIN,  /* blocks from magazines of idle threads, or transfer caches, to bins */
    CYCLES_BIG,    /* a big block: its mapping found, made, resized or kept */
    CYCLES_PURGE,  /* memory goes back to the system */
    CYCLES_MOVE,   /* realloc to another place: malloc, copy, free */
    CYCLES_SAMPLE, /* a block becomes a sample: its stack is found */
    CYCLES_LOCK_WAIT,
    CYCLES_KINDS
};

/* Whose time it is. Spans inside another one are of its side. */
enum cycles_side {
    CYCLES_OTHER, /* purges on request, ends of threads */
    CYCLES_MALLOC,
    CYCLES_FREE,
    CYCLES_SIDES,
    CYCLES_SAME = CYCLES_SIDES
};

struct cycles_span {
    uint64_t start;  /* ticks; 0: not counted */
    uint64_t inside; /* of the thread, as `start`: see cycles.c */
    size_t bytes;    /* what it is about, for the trace */
    uint8_t kind, side, outer_side;
};

/* Ticks. The histogram has a place for each power of two: bucket i counts those of i bits. */
enum { CYCLES_BUCKETS = 40 };
struct cycles_counts {
    uint64_t count, total, own, max;
    uint64_t buckets[CYCLES_BUCKETS];
};

/* Threads use different ones. */
struct cycles_copy {
    struct cycles_counts of[CYCLES_SIDES][CYCLES_KINDS];
} CACHE_ALIGNED;

/* So many; NULL until the first span: a process that locks its memory would pay for them. Atomic:
 * release on store pairs with acquire on load. Counts in it are atomic relaxed, any thread. Outside
 * of cycles.c nobody but the descriptor looks at them. */
enum { CYCLES_COPIES = 8 };
extern struct cycles_copy *cycles_copies;

/* Of a build with HAKMEM_DEBUG=1: spans are told one by one, on stderr. Const after the
 * constructor. */
extern bool cycles_trace;

extern const char cycles_side_names[CYCLES_SIDES][8];
extern const char cycles_kind_names[CYCLES_KINDS][16];

/* From the library's constructor. */
void cycles_start(void);

SLOW_PATH void cycles_begin_counted(
    struct cycles_span *span, enum cycles_kind kind, enum cycles_side side, size_t bytes);
SLOW_PATH uint64_t cycles_end_counted(struct cycles_span *span);

ALWAYS_INLINE bool cycles_are_counted(void)
{
    return UNLIKELY(POLICY(cycles)) || (HAKMEM_DEBUG && cycles_trace);
}

ALWAYS_INLINE void cycles_begin(
    struct cycles_span *span, enum cycles_kind kind, enum cycles_side side, size_t bytes)
{
    span->start = 0;
    if (cycles_are_counted())
        cycles_begin_counted(span, kind, side, bytes);
}

/* Returns its ticks; 0 when it was not counted. */
ALWAYS_INLINE uint64_t cycles_end(struct cycles_span *span)
{
    return UNLIKELY(span->start) ? cycles_end_counted(span) : 0;
}

/* Adds up all copies. */
void cycles_collect(enum cycles_side side, enum cycles_kind kind, struct cycles_counts *counts);

#endif
