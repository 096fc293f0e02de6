/* The calls of trace.h, and the start, as the options say. */
#include "trace/trace.h"

#include "api/environment.h"
#include "base/policy.h"
#include "trace/crash.h"
#include "trace/due.h"
#include "trace/guard.h"
#include "trace/log.h"
#include "trace/profile.h"
#include "trace/record.h"
#include "trace/sample.h"
#include "trace/signals.h"
#include "trace/spare.h"

/* A recording consists of samples: it turns them on if no option does. */
static void start_tracing(void)
{
    static const size_t recorded_mean = 512 * KIB;
    size_t mean = trace_mean(POLICY(sample_kib));
    crash_start();
    if (!mean && environment_file(RECORD_FILE))
        mean = recorded_mean;
    record_start(mean);
    if (!POLICY(fallback) && !sample_set_mean(mean))
        ATOMIC_STORE_RELAXED(&policy.sample_kib, 0);
}

static void stop_tracing(void)
{
    const char *path = environment_file(PROFILE_FILE);
    if (path)
        profile_write(path);
    log_stop();
}

static void thread_starts(struct heap *heap)
{
    sampler_forget(heap);
    heap->signal_stack = signals_give_stack(heap->signal_stack);
}

static void thread_ends(struct heap *heap)
{
    signals_take_stack(&heap->signal_stack);
}

static bool covers_guarded(const void *address)
{
    return guard_covers(address);
}

const struct trace *trace_open(void)
{
    static const struct trace calls = {
        .start = start_tracing,
        .stop = stop_tracing,
        .thread_starts = thread_starts,
        .thread_ends = thread_ends,
        .next = due_next,
        .replace = sample_replace,
        .big = sample_big,
        .decide = sample_decide,
        .begin = sample_begin,
        .drop = sample_drop,
        .covers = covers_guarded,
        .size = sample_size,
        .object = sample_object,
        .free = sample_free,
        .resized = sample_resized,
        .moves = sample_moves,
        .died = sample_died,
        .give_back = spare_flush,
        .observe = sample_observe,
        .set_mean = sample_set_mean,
        .write_profile = profile_write,
        .answer = record_answer,
        .misuse = crash_tell_misuse};
    return &calls;
}
