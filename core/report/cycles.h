/* Counts the cycles of slow paths, in the measuring library alone, libhakmem-profile.so: it times
 * each piece of work, a *span*, and counts it by its kind, for malloc and free apart. cycles.def
 * says which calls are spans.
 *
 *     malloc  |-- call ------------------------------------------|
 *                    |-- refill from bins ----------|
 *                         |-- lock wait --|  |-- fresh slab --|
 *
 * A span's own time is the part outside of inner spans, so own times add up to the whole. Calls
 * that a magazine serves have no spans, or spans that are not counted.
 *
 * Any thread; counters are atomic, in a few copies.
 */
#ifndef REPORT_CYCLES_H
#define REPORT_CYCLES_H

#include "base/macros.h"

enum cycles_kind {
    CYCLES_CALL,       /* a whole call of malloc or free that no magazine served at once */
    CYCLES_FIRST_CALL, /* a thread takes a heap */
    CYCLES_REFILL,
    CYCLES_FRESH_SLAB,
    CYCLES_FLUSH,  /* a batch from a magazine into transfer caches or bins */
    CYCLES_DRAIN,  /* blocks from magazines of idle threads, or transfer caches, to bins */
    CYCLES_BIG,    /* a big block: its mapping found, made, resized or kept */
    CYCLES_PURGE,  /* memory goes back to the system */
    CYCLES_SAMPLE, /* a block becomes a sample: its stack is found */
    CYCLES_LOCK_WAIT,
    CYCLES_KINDS
};

/* Which calls the time belongs to. A span inside another one is on its side. */
enum cycles_side {
    CYCLES_OTHER, /* purges on request, ends of threads */
    CYCLES_MALLOC,
    CYCLES_FREE,
    CYCLES_SIDES,
    CYCLES_SAME = CYCLES_SIDES
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

/* Atomic relaxed, any thread. Only cycles.c and the descriptor look at them. */
enum { CYCLES_COPIES = 8 };
extern struct cycles_copy cycles_copies[CYCLES_COPIES];

extern const char cycles_side_names[CYCLES_SIDES][8];
extern const char cycles_kind_names[CYCLES_KINDS][16];

/* Counts a wait for a lock that has just ended. */
void cycles_lock_waited(uint64_t ticks);

/* Adds up all copies. */
void cycles_collect(enum cycles_side side, enum cycles_kind kind, struct cycles_counts *counts);

#endif
