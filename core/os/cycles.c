/* See cycles.h.
 *
 * Each thread adds up the ticks of all spans that have ended. What that sum grew by between begin
 * and end of a span was in spans inside it; the end sets it to what it was at the begin, and the
 * whole of the span. So no span has to know the one around it.
 */
#include "os/cycles.h"

#include "base/atomic.h"
#include "base/text.h"
#include "os/identity.h"
#include "os/os.h"
#include "os/syscall.h"
#include "os/ticks.h"

struct cycles_copy *cycles_copies;

/* In one word: thread-local memory is scarce. */
static __thread struct {
    uint64_t ended_ticks : 62;
    uint64_t side : 2;
} now;

bool cycles_trace;

const char cycles_side_names[CYCLES_SIDES][8] = {"other", "malloc", "free"};
const char cycles_kind_names[CYCLES_KINDS][16] = {
    "call",  "first_call", "refill_transfer", "refill_bins", "fresh_slab", "flush",
    "drain", "big",        "purge",           "move",        "sample",     "lock_wait"};

void cycles_start(void)
{
    if (cycles_are_counted())
        ticks_start();
}

/* No span begins under a lock, so that memory may be asked for here. */
static SLOW_PATH bool map_copies(void)
{
    static const char line[] =
        "hakmem: option cycles: there is no memory to count them in; it is 0 now\n";
    size_t bytes = round_up(CYCLES_COPIES * sizeof(struct cycles_copy), os_page_size());
    struct cycles_copy *none = NULL, *mapped = os_map(bytes, os_page_size(), NULL);
    if (!mapped) {
        if (__atomic_exchange_n(&policy.cycles, 0, __ATOMIC_RELAXED))
            os_write_quietly(STDERR, line, sizeof line - 1);
        return false;
    }
    if (!__atomic_compare_exchange_n(
            &cycles_copies, &none, mapped, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        os_discard(mapped, bytes);
    return true;
}

void cycles_begin_counted(
    struct cycles_span *span, enum cycles_kind kind, enum cycles_side side, size_t bytes)
{
    if (UNLIKELY(!ATOMIC_LOAD_ACQUIRE(&cycles_copies)) && !map_copies())
        return;
    ticks_start();
    span->kind = (uint8_t)kind;
    span->outer_side = (uint8_t)now.side;
    span->side = (uint8_t)(side == CYCLES_SAME ? now.side : side);
    span->bytes = bytes;
    span->inside = now.ended_ticks;
    now.side = span->side;
    span->start = cpu_ticks();
}

static void tell(const struct cycles_span *span, uint64_t ticks)
{
    char buffer[160];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    text_string(&text, "hakmem: trace: thread ");
    text_unsigned(&text, os_thread_id());
    text_string(&text, ", ");
    text_string(&text, cycles_side_names[span->side]);
    text_string(&text, ": ");
    text_string(&text, cycles_kind_names[span->kind]);
    if (span->bytes) {
        text_string(&text, " of ");
        text_unsigned(&text, span->bytes);
        text_string(&text, " bytes");
    }
    text_string(&text, ", ");
    text_unsigned(&text, ticks);
    text_string(&text, " ticks\n");
    os_write_quietly(STDERR, buffer, text_stored(&text));
}

uint64_t cycles_end_counted(struct cycles_span *span)
{
    uint64_t ticks = cpu_ticks() - span->start, inside = now.ended_ticks - span->inside;
    now.ended_ticks = span->inside + ticks;
    now.side = span->outer_side;
    struct cycles_copy *copy = &ATOMIC_LOAD_ACQUIRE(&cycles_copies)[own_identity % CYCLES_COPIES];
    struct cycles_counts *counts = &copy->of[span->side][span->kind];
    uint64_t max = ATOMIC_LOAD_RELAXED(&counts->max);
    ATOMIC_ADD_RELAXED(&counts->count, 1);
    ATOMIC_ADD_RELAXED(&counts->total, ticks);
    ATOMIC_ADD_RELAXED(&counts->own, ticks - size_min(ticks, inside));
    while (max < ticks && !__atomic_compare_exchange_n(
                              &counts->max, &max, ticks, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
    unsigned bucket = ticks ? 64 - (unsigned)__builtin_clzll(ticks) : 0;
    ATOMIC_ADD_RELAXED(&counts->buckets[size_min(bucket, CYCLES_BUCKETS - 1)], 1);
    if (HAKMEM_DEBUG && cycles_trace)
        tell(span, ticks);
    return ticks;
}

void cycles_collect(enum cycles_side side, enum cycles_kind kind, struct cycles_counts *sum)
{
    const struct cycles_copy *all = ATOMIC_LOAD_ACQUIRE(&cycles_copies);
    *sum = (struct cycles_counts){0};
    for (unsigned i = 0; all && i < CYCLES_COPIES; i++) {
        const struct cycles_counts *counts = &all[i].of[side][kind];
        sum->count += ATOMIC_LOAD_RELAXED(&counts->count);
        sum->total += ATOMIC_LOAD_RELAXED(&counts->total);
        sum->own += ATOMIC_LOAD_RELAXED(&counts->own);
        sum->max = size_max(sum->max, ATOMIC_LOAD_RELAXED(&counts->max));
        for (unsigned bucket = 0; bucket < CYCLES_BUCKETS; bucket++)
            sum->buckets[bucket] += ATOMIC_LOAD_RELAXED(&counts->buckets[bucket]);
    }
}
