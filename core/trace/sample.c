/* See sample.h. */
#include "trace/sample.h"

#include <errno.h>
#include <string.h>

#include "base/policy.h"
#include "map/metadata.h"
#include "os/cancel.h"
#include "os/os.h"
#include "slab/shard.h"
#include "trace/place.h"

/* What is kept of a thread that samples; it goes with the heap. Its owner only. */
struct sampler {
    bool busy; /* takes a stack, or waits for one that a signal handler interrupted */
    struct unwind_stack stack;
};

/* ---- Stacks ---------------------------------------------------------------------------------- */

/* The thread's own, if it may take a stack now; it is busy then. */
static struct sampler *begin_stack(struct heap *heap)
{
    struct sampler *sampler = heap->sampler;
    uint64_t thread = identity_self();
    if (UNLIKELY(!sampler))
        sampler = heap->sampler = metadata_alloc(sizeof *sampler);
    if (UNLIKELY(!sampler))
        return NULL;
    if (UNLIKELY(heap->sampling_thread != thread)) {
        memset(sampler, 0, sizeof *sampler);
        heap->sampling_thread = thread;
    }
    if (UNLIKELY(sampler->busy))
        return NULL;
    sampler->busy = true;
    return sampler;
}

static struct site *find_site(const struct unwind_start *start)
{
    if (ATOMIC_LOAD_RELAXED(&sample_is_for_observer))
        return site_find(&start->caller, 1, 0);
    struct heap *heap = heap_of_thread();
    struct sampler *sampler = heap ? begin_stack(heap) : NULL;
    if (!sampler)
        return NULL;
    int kept = errno;
    struct site *site = unwind_site(&sampler->stack, start);
    errno = kept;
    sampler->busy = false;
    return site;
}

struct site *sample_site(const struct unwind_start *start)
{
    int type = cancel_put_off();
    struct site *site = find_site(start);
    cancel_restore(type);
    return site;
}

void sample_moves(bool moves)
{
    struct heap *heap = heap_of_thread();
    if (heap)
        heap->moves = moves;
}

/* ---- Births ---------------------------------------------------------------------------------- */

static uint64_t bytes_of(const struct sample *sample)
{
    return (size_max(sample->requested_bytes, 1) * sample->parts + SITE_PARTS / 2) / SITE_PARTS;
}

static void tell_log(struct sample *sample, size_t usable, bool guarded)
{
    const struct site *site = sample->site;
    if (!log_knows_site(site->number))
        log_site(site->number, site->frame, site->frames, sample->birth_ns);
    const struct log_birth birth = {
        .time_ns = sample->birth_ns,
        .requested_bytes = sample->requested_bytes,
        .usable_bytes = usable,
        .weight_bytes = bytes_of(sample),
        .site = site->number,
        .thread = sample->thread,
        .size_class = sample->size_class,
        .flags = guarded ? LOG_GUARDED : 0};
    sample->log = log_birth(&birth);
}

/* A record for a block that stands for so many parts of one. */
static struct sample *make(struct site *site, size_t size, uint64_t parts, unsigned size_class)
{
    struct sample *sample = metadata_alloc(sizeof *sample);
    if (!sample)
        return NULL;
    sample->site = site;
    sample->requested_bytes = size;
    sample->parts = parts;
    sample->birth_ns = os_clock_ns();
    sample->thread = identity_thread(identity_self());
    sample->size_class = (uint8_t)size_class;
    return sample;
}

/* The block that the sample is of has been handed out. */
static void count_birth(struct sample *sample, void *block, size_t usable, bool guarded)
{
    struct site *site = sample->site;
    uint64_t bytes = bytes_of(sample);
    ATOMIC_ADD_RELAXED(&site->born_samples, 1);
    ATOMIC_ADD_RELAXED(&site->born_bytes, bytes);
    ATOMIC_ADD_RELAXED(&site->born_parts, sample->parts);
    PROBE_OTEL(3, alloc, block, sample->requested_bytes, bytes);
    if (UNLIKELY(log_is_on()))
        tell_log(sample, usable, guarded);
}

/* ---- Blocks of slabs ------------------------------------------------------------------------- */

/* True for the samples that are to be guarded. */
static bool is_guarded_turn(void)
{
    static uint32_t turn; /* atomic relaxed, any thread */
    uint32_t guards = (uint32_t)POLICY(sample_guards);
    return guards && ATOMIC_ADD_RELAXED(&turn, 1) % guards == 0;
}

static void *replace(
    void *block, size_t size, size_t alignment, bool zero, const struct unwind_start *start)
{
    struct heap *heap = heap_of_thread();
    unsigned size_class = heap->sample_class;
    uint64_t parts = due_stands_for(size_classes[size_class].size, SITE_PARTS);
    const struct slab *slab = slab_lookup(block);
    heap->sample_class = CLASS_NONE;
    /* A signal handler may have come between, or the thread that popped was cancelled. */
    if (!parts || !slab || slab->size_class != size_class)
        return block;
    struct site *site = find_site(start);
    struct sample *sample = site ? make(site, size, parts, size_class) : NULL;
    if (!sample)
        return block;
    void *taken = NULL;
    if (UNLIKELY(is_guarded_turn()))
        taken = guard_take(sample, site, size, alignment, sample->thread);
    bool guarded = taken != NULL;
    heap = heap_enter();
    if (heap && !taken)
        taken = place_take(sample, size_class, size, alignment, zero);
    if (heap && taken)
        heap_exchange(heap, size_class, block);
    if (heap)
        heap_leave(heap);
    if (!taken) {
        sample_drop(sample);
        return block;
    }
    count_birth(sample, taken, size_classes[size_class].size, guarded);
    return taken;
}

static void count_free(struct heap *heap, unsigned size_class)
{
    if (LIKELY(heap != NULL))
        heap_count_free(heap, size_class);
    else
        ATOMIC_ADD_RELAXED(&bin_of(slab_samples_shard, size_class)->direct_blocks, 1);
}

void *sample_replace(
    void *block, size_t size, size_t alignment, bool zero, const struct unwind_start *start)
{
    int type = cancel_put_off();
    block = replace(block, size, alignment, zero, start);
    cancel_restore(type);
    return block;
}

struct sample *sample_of(struct slab *slab, const void *block, const char *call)
{
    return place_look(slab, block, call);
}

struct sample *sample_free(struct heap *heap, struct slab *slab, void *block)
{
    struct sample *sample = place_end(slab, block);
    /* Before anybody else can have the block. */
    PROBE_OTEL(1, free, block);
    count_free(heap, sample->size_class);
    place_put(slab, block);
    return sample;
}

struct sample *sample_free_guarded(
    struct heap *heap, struct guard *guard, void *block, const struct site *freed)
{
    struct sample *sample = guard_put(guard, block, freed, identity_thread(identity_self()));
    PROBE_OTEL(1, free, block);
    count_free(heap, sample->size_class);
    return sample;
}

/* ---- Big blocks, and those of the preset `hardened` ------------------------------------------ */

struct sample *sample_decide(size_t size, unsigned size_class, const struct unwind_start *start)
{
    struct heap *heap = heap_of_thread();
    size_t bytes = size_class ? size_classes[size_class].size : size;
    if (!heap || !due_decide(&heap->random, bytes))
        return NULL;
    int type = cancel_put_off();
    uint64_t parts = due_stands_for(bytes, SITE_PARTS);
    struct site *site = parts ? find_site(start) : NULL;
    struct sample *sample = site ? make(site, size, parts, size_class) : NULL;
    cancel_restore(type);
    return sample;
}

void sample_begin(struct sample *sample, void *block, size_t usable)
{
    int type = cancel_put_off();
    count_birth(sample, block, usable, false);
    cancel_restore(type);
}

void sample_drop(struct sample *sample)
{
    int type = cancel_put_off();
    metadata_free(sample, sizeof *sample);
    cancel_restore(type);
}

void sample_big(struct big *big, size_t size, const struct unwind_start *start)
{
    struct sample *sample = sample_decide(size, CLASS_NONE, start);
    if (!sample)
        return;
    ATOMIC_STORE_RELEASE(&big->sample, sample);
    sample_begin(sample, big->region.base, big->mapped);
}

struct sample *sample_free_big(struct big *big, const void *block)
{
    if (LIKELY(!ATOMIC_LOAD_RELAXED(&big->sample)) || block != big->region.base)
        return NULL;
    struct sample *sample = __atomic_exchange_n(&big->sample, NULL, __ATOMIC_ACQ_REL);
    if (sample)
        PROBE_OTEL(1, free, block);
    return sample;
}

/* ---- Deaths ---------------------------------------------------------------------------------- */

static void count_death(const struct sample *sample, uint64_t now_ns, unsigned flags)
{
    struct site *site = sample->site;
    ATOMIC_ADD_RELAXED(&site->dead_samples, 1);
    ATOMIC_ADD_RELAXED(&site->dead_bytes, bytes_of(sample));
    ATOMIC_ADD_RELAXED(&site->dead_parts, sample->parts);
    if (flags & LOG_REMOTE)
        ATOMIC_ADD_RELAXED(&site->remote_parts, sample->parts);
    if (flags & LOG_REALLOC)
        ATOMIC_ADD_RELAXED(&site->realloc_parts, sample->parts);
    site_count_lifetime(site, os_time_between(now_ns, sample->birth_ns), sample->parts);
}

void sample_bury(struct sample *sample)
{
    int type = cancel_put_off();
    const struct heap *heap = heap_of_thread();
    struct log_death death = {.time_ns = os_clock_ns(), .thread = identity_thread(identity_self())};
    if (death.thread != sample->thread)
        death.flags |= LOG_REMOTE;
    if (heap && heap->moves)
        death.flags |= LOG_REALLOC;
    count_death(sample, death.time_ns, death.flags);
    if (UNLIKELY(sample->log))
        log_death(sample->log, &death);
    metadata_free(sample, sizeof *sample);
    cancel_restore(type);
}

/* For the log one block ends and another one begins, which stands for as many. */
static void tell_resized(struct sample *sample, size_t size)
{
    struct log_death death = {
        .time_ns = os_clock_ns(), .thread = identity_thread(identity_self()), .flags = LOG_REALLOC};
    log_death(sample->log, &death);
    sample->birth_ns = death.time_ns;
    tell_log(sample, size, false);
}

void sample_resize(struct sample *sample, void *before, void *block, size_t size)
{
    if (sample->requested_bytes == size)
        return;
    int type = cancel_put_off();
    ATOMIC_ADD_RELAXED(&sample->site->dead_bytes, bytes_of(sample));
    sample->requested_bytes = size;
    ATOMIC_ADD_RELAXED(&sample->site->born_bytes, bytes_of(sample));
    PROBE_OTEL(1, free, before);
    PROBE_OTEL(3, alloc, block, size, bytes_of(sample));
    if (UNLIKELY(sample->log))
        tell_resized(sample, size);
    cancel_restore(type);
}
