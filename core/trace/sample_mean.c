/* Sampling begins, ends and changes its rate: see sample.h. */
#include "base/policy.h"
#include "os/cancel.h"
#include "os/os.h"
#include "slab/shard.h"
#include "trace/claim.h"
#include "trace/due.h"
#include "trace/sample.h"
#include "trace/spare.h"

/* The mean distance in bytes that profilers at the probe expect. */
static const size_t observed_mean = 512 * KIB;

bool sample_is_for_observer;

/* ---- By an option ---------------------------------------------------------------------------- */

/* By one thread at a time, which holds no lock: the dynamic linker may be called. */
static bool change_to(size_t bytes)
{
    static const char no_guards[] =
        "hakmem: option sample_guards: no memory for guards, samples have none\n";
    if (bytes == due_mean() && !ATOMIC_LOAD_RELAXED(&sample_is_for_observer))
        return true;
    ATOMIC_STORE_RELAXED(&sample_is_for_observer, false);
    struct heap *heap = heap_enter(); /* the first heap sets the number of shards */
    if (!heap)
        return false;
    heap_leave(heap);
    if (bytes && !shard_prepare_samples())
        return false;
    if (bytes && POLICY(sample_guards) && !guard_start && !guard_open())
        os_write_quietly(STDERR, no_guards, sizeof no_guards - 1);
    if (bytes)
        unwind_open(POLICY(sample_stack) != 0);
    due_set_mean(bytes);
    if (!bytes)
        spare_flush();
    heap = heap_enter();
    if (!heap)
        return true;
    heap_draw_due(heap, false);
    heap_leave(heap);
    return true;
}

bool sample_set_mean(size_t bytes)
{
    static uint64_t claim; /* of claim_take */
    static size_t wanted;  /* atomic, any thread */
    size_t mean;
    bool changed = true;
    int type = cancel_put_off();
    /* Both sides exchange `wanted`: either this thread sees that the other's claim has ended, or
     * the other sees what this one wants. */
    __atomic_exchange_n(&wanted, bytes, __ATOMIC_ACQ_REL);
    while (claim_take(&claim)) {
        mean = ATOMIC_LOAD_RELAXED(&wanted);
        changed = change_to(mean);
        claim_release(&claim);
        if (__atomic_fetch_add(&wanted, 0, __ATOMIC_ACQ_REL) == mean)
            break;
    }
    cancel_restore(type);
    return changed;
}

/* ---- By an observer -------------------------------------------------------------------------- */

/* A mean set by options wins. */
static void begin_observed(void)
{
    if (due_mean() || !shard_prepare_samples())
        return;
    ATOMIC_STORE_RELAXED(&sample_is_for_observer, true);
    due_set_mean(observed_mean);
}

static void end_observed(void)
{
    if (!__atomic_exchange_n(&sample_is_for_observer, false, __ATOMIC_RELAXED) ||
        due_mean() != observed_mean)
        return;
    due_set_mean(0);
    spare_flush();
}

void sample_observe(bool comes)
{
    if (comes)
        begin_observed();
    else
        end_observed();
}
