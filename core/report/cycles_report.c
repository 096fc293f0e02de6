/* See cycles_report.h. */
#include "report/cycles_report.h"

#include "os/ticks.h"
#include "report/cycles.h"
#include "report/locks.h"
#include "report/report.h"

static uint64_t slow_ns(enum cycles_side side)
{
    struct cycles_counts counts;
    cycles_collect(side, CYCLES_CALL, &counts);
    return ticks_ns(counts.total);
}

void cycles_sum(struct hakmem_stats *total)
{
    total->malloc_slow_ns = slow_ns(CYCLES_MALLOC);
    total->free_slow_ns = slow_ns(CYCLES_FREE);
    for (enum lock_kind kind = 0; kind < LOCK_KINDS; kind++) {
        struct lock_kind_usage usage;
        locks_collect(kind, &usage);
        total->lock_waits += usage.all.waits;
        total->lock_wait_ns += usage.all.waited_ns;
    }
}

/* ---- Table ----------------------------------------------------------------------------------- */

/* An upper bound in ticks of `thousandths` of the spans: the end of their bucket in the histogram.
 */
static uint64_t quantile(const struct cycles_counts *counts, unsigned thousandths)
{
    uint64_t below = 0;
    for (unsigned bucket = 0; bucket < CYCLES_BUCKETS; bucket++) {
        below += counts->buckets[bucket];
        if (below * 1000 >= counts->count * thousandths)
            return size_min(((uint64_t)1 << bucket) - 1, counts->max);
    }
    return counts->max;
}

static void print_span_row(
    struct text *text, enum cycles_side side, enum cycles_kind kind,
    const struct cycles_counts *counts)
{
    text_string_padded(text, cycles_side_names[side], 7);
    text_string_padded(text, cycles_kind_names[kind], 15);
    text_unsigned_padded(text, counts->count, 12);
    text_unsigned_padded(text, ticks_ns(counts->total) / 1000, 12);
    text_unsigned_padded(text, ticks_ns(counts->own) / 1000, 12);
    text_unsigned_padded(text, ticks_ns(counts->total) / counts->count, 10);
    text_unsigned_padded(text, ticks_ns(quantile(counts, 500)), 10);
    text_unsigned_padded(text, ticks_ns(quantile(counts, 990)), 10);
    text_unsigned_padded(text, ticks_ns(counts->max), 12);
    text_char(text, '\n');
}

static void print_locks(struct text *text)
{
    text_string(text, "\nlock            acquisitions       waits   waited us     held us\n");
    for (enum lock_kind kind = 0; kind < LOCK_KINDS; kind++) {
        struct lock_kind_usage usage;
        locks_collect(kind, &usage);
        text_string_padded(text, lock_kind_names[kind], 14);
        text_unsigned_padded(text, usage.all.acquisitions, 14);
        text_unsigned_padded(text, usage.all.waits, 12);
        text_unsigned_padded(text, usage.all.waited_ns / 1000, 12);
        text_unsigned_padded(text, usage.all.held_ns / 1000, 12);
        text_char(text, '\n');
    }
}

void cycles_print(struct text *text)
{
    text_string(
        text, "\nslow paths                   count    total us      own us   mean ns    p50 ns"
              "    p99 ns      max ns\n");
    for (enum cycles_side side = CYCLES_SIDES; side-- > 0;) {
        for (enum cycles_kind kind = 0; kind < CYCLES_KINDS; kind++) {
            struct cycles_counts counts;
            cycles_collect(side, kind, &counts);
            if (counts.count)
                print_span_row(text, side, kind, &counts);
        }
    }
    print_locks(text);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_object(struct text *text, const char *name)
{
    text_char(text, '"');
    text_string(text, name);
    text_string(text, "\":{");
}

static void json_kind(struct text *text, enum cycles_side side, enum cycles_kind kind)
{
    struct cycles_counts counts;
    unsigned places = CYCLES_BUCKETS;
    cycles_collect(side, kind, &counts);
    json_object(text, cycles_kind_names[kind]);
    json_number(text, "count", counts.count);
    json_number(text, "ticks", counts.total);
    json_number(text, "own_ticks", counts.own);
    json_number(text, "max_ticks", counts.max);
    text_string(text, "\"histogram\":[");
    while (places && !counts.buckets[places - 1])
        places--;
    for (unsigned i = 0; i < places; i++) {
        text_string(text, i ? "," : "");
        text_unsigned(text, counts.buckets[i]);
    }
    text_string(text, "]},");
}

static void json_lock(struct text *text, const char *name, const struct lock_usage *usage)
{
    json_object(text, name);
    json_number(text, "acquisitions", usage->acquisitions);
    json_number(text, "waits", usage->waits);
    json_number(text, "handovers", usage->handovers);
    json_number(text, "interrupted", usage->interrupted);
    json_number(text, "waited_ns", usage->waited_ns);
    json_number(text, "held_ns", usage->held_ns);
    json_close(text, "},");
}

static void json_locks(struct text *text)
{
    json_number(text, "lock_profile_cost_ps", locks_profile_cost_ps());
    json_object(text, "locks");
    for (enum lock_kind kind = 0; kind < LOCK_KINDS; kind++) {
        struct lock_kind_usage usage;
        locks_collect(kind, &usage);
        json_object(text, lock_kind_names[kind]);
        json_number(text, "parts", usage.parts);
        json_number(text, "locks", usage.locks);
        json_lock(text, "all", &usage.all);
        json_lock(text, "busiest", &usage.busy);
        json_lock(text, "most_met", &usage.met);
        json_close(text, "},");
    }
    json_close(text, "},");
}

void cycles_json(struct text *text)
{
    json_object(text, "cycles");
    /* So many that the division rounds little off. */
    const uint64_t ticks = (uint64_t)1 << 40;
    uint64_t ns = ticks_ns(ticks);
    json_number(text, "ticks_per_ms", ns ? (uint64_t)((double)ticks * 1e6 / (double)ns) : 0);
    for (enum cycles_side side = 0; side < CYCLES_SIDES; side++) {
        json_object(text, cycles_side_names[side]);
        for (enum cycles_kind kind = 0; kind < CYCLES_KINDS; kind++)
            json_kind(text, side, kind);
        json_close(text, "},");
    }
    json_close(text, "},");
    json_locks(text);
}
