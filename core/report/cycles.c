/* See cycles.h.
 *
 * Each thread adds up the ticks of all spans that have ended. The growth of that sum between begin
 * and end of a span is the time of the spans inside it; the end sets the sum to its value at the
 * begin plus the whole span. So no span has to know the one around it.
 */
#include "report/cycles.h"

#include <stdlib.h>
#include <string.h>

#include "api/alloc.h"
#include "base/atomic.h"
#include "base/pressure.h"
#include "os/identity.h"
#include "os/syscall.h"
#include "os/ticks.h"
#include "slab/bin.h"
#include "slab/shard.h"
#include "slab/sweep.h"
#include "slab/transfer.h"
#include "span/big.h"
#include "span/big_cache.h"
#include "span/page_heap.h"
#include "thread/idle.h"
#include "thread/registry.h"
#include "trace/trace.h"

struct cycles_copy cycles_copies[CYCLES_COPIES];

const char cycles_side_names[CYCLES_SIDES][8] = {"other", "malloc", "free"};
const char cycles_kind_names[CYCLES_KINDS][16] = {"call",   "first_call", "refill", "fresh_slab",
                                                  "flush",  "drain",      "big",    "purge",
                                                  "sample", "lock_wait"};

static __thread struct {
    uint64_t ended_ticks;
    enum cycles_side side;
    bool entered; /* the heap, in this call: it is no hit */
} now;

/* LIBHAKMEM_PROFILE=locks: time stamps would bend the time of a call, which `make scale` measures.
 * Const after the constructor. */
static bool locks_alone;

/* Before the constructor in api/init.c, which registers handlers of fork: musl asks malloc then. */
__attribute__((constructor(101))) static void start_counting(void)
{
    const char *what = getenv("LIBHAKMEM_PROFILE");
    locks_alone = what && strcmp(what, "locks") == 0;
    ticks_start();
}

struct span {
    uint64_t start;  /* ticks; 0: it does not count */
    uint64_t inside; /* ended_ticks of the thread at the start */
    enum cycles_kind kind;
    enum cycles_side side, outer_side;
};

static struct span begin_span(enum cycles_side side, enum cycles_kind kind)
{
    struct span span = {0};
    bool in_call = now.side != CYCLES_OTHER;
    /* Of nested calls, only the outermost counts. */
    if (UNLIKELY(locks_alone) || (kind == CYCLES_CALL && in_call))
        return span;
    if (kind == CYCLES_CALL)
        now.entered = false;
    span.kind = kind;
    span.outer_side = now.side;
    span.side = side == CYCLES_SAME ? now.side : side;
    span.inside = now.ended_ticks;
    now.side = span.side;
    span.start = cpu_ticks();
    return span;
}

static void count_span(enum cycles_side side, enum cycles_kind kind, uint64_t ticks, uint64_t own)
{
    struct cycles_counts *counts = &cycles_copies[own_identity % CYCLES_COPIES].of[side][kind];
    uint64_t max = ATOMIC_LOAD_RELAXED(&counts->max);
    ATOMIC_ADD_RELAXED(&counts->count, 1);
    ATOMIC_ADD_RELAXED(&counts->total, ticks);
    ATOMIC_ADD_RELAXED(&counts->own, own);
    while (max < ticks && !__atomic_compare_exchange_n(
                              &counts->max, &max, ticks, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
    unsigned bucket = ticks ? 64 - (unsigned)__builtin_clzll(ticks) : 0;
    ATOMIC_ADD_RELAXED(&counts->buckets[size_min(bucket, CYCLES_BUCKETS - 1)], 1);
}

static void end_span(const struct span *span)
{
    if (!span->start)
        return;
    uint64_t ticks = cpu_ticks() - span->start, inside = now.ended_ticks - span->inside;
    now.side = span->outer_side;
    if (span->kind == CYCLES_CALL && !now.entered)
        return;
    now.ended_ticks = span->inside + ticks;
    count_span(span->side, span->kind, ticks, ticks - size_min(ticks, inside));
}

void cycles_lock_waited(uint64_t ticks)
{
    if (UNLIKELY(locks_alone))
        return;
    now.ended_ticks += ticks;
    count_span(now.side, CYCLES_LOCK_WAIT, ticks, ticks);
}

/* clang-format off */
#define SPAN(function, side, kind, type, parameters, arguments)                                    \
    type function parameters; /* as its header has it, or this does not compile */                 \
    type __real_##function parameters;                                                             \
    type __wrap_##function parameters;                                                             \
    type __wrap_##function parameters                                                              \
    {                                                                                              \
        __attribute__((cleanup(end_span), unused)) struct span span =                              \
            begin_span(CYCLES_##side, CYCLES_##kind);                                              \
        return __real_##function arguments;                                                        \
    }
#include "report/cycles.def"
/* clang-format on */

/* A call that no magazine serves enters the heap. */
struct heap *__real_heap_enter(void);
struct heap *__wrap_heap_enter(void);
struct heap *__wrap_heap_enter(void)
{
    now.entered = true;
    return __real_heap_enter();
}

void cycles_collect(enum cycles_side side, enum cycles_kind kind, struct cycles_counts *sum)
{
    *sum = (struct cycles_counts){0};
    for (unsigned i = 0; i < CYCLES_COPIES; i++) {
        const struct cycles_counts *counts = &cycles_copies[i].of[side][kind];
        sum->count += ATOMIC_LOAD_RELAXED(&counts->count);
        sum->total += ATOMIC_LOAD_RELAXED(&counts->total);
        sum->own += ATOMIC_LOAD_RELAXED(&counts->own);
        sum->max = size_max(sum->max, ATOMIC_LOAD_RELAXED(&counts->max));
        for (unsigned bucket = 0; bucket < CYCLES_BUCKETS; bucket++)
            sum->buckets[bucket] += ATOMIC_LOAD_RELAXED(&counts->buckets[bucket]);
    }
}
