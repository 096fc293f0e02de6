/* See sample.h. */
#include "trace/sample.h"

#include <errno.h>
#include <string.h>

#include "base/policy.h"
#include "hardened.h"
#include "map/metadata.h"
#include "os/cancel.h"
#include "os/os.h"
#include "scope/scope.h"
#include "slab/shard.h"
#include "trace/due.h"
#include "trace/place.h"

/* The state of a thread that samples, kept with its heap. Owner thread only. */
struct sampler {
    uint64_t thread; /* identity of the owner; 0: an earlier owner of the heap left it */
    bool busy;       /* is taking a stack, perhaps interrupted by a signal handler */
    struct unwind_stack stack;
};

/* ---- Stacks ---------------------------------------------------------------------------------- */

/* The thread's sampler, made busy; NULL: it cannot take a stack now. */
static struct sampler *begin_stack(struct heap *heap)
{
    struct sampler *sampler = heap->sampler;
    uint64_t thread = identity_self();
    if (UNLIKELY(!sampler))
        sampler = heap->sampler = metadata_alloc(sizeof *sampler);
    if (UNLIKELY(!sampler))
        return NULL;
    if (UNLIKELY(sampler->thread != thread)) {
        memset(sampler, 0, sizeof *sampler);
        sampler->thread = thread;
    }
    if (UNLIKELY(sampler->busy))
        return NULL;
    sampler->busy = true;
    return sampler;
}

/* The same stack, in the scope that the calling thread has entered. */
static struct site *site_in_scope(const struct site *site)
{
    char name[SCOPE_PATH_BYTES] = {0};
    scope_name(scope_entered->scope, name);
    return site_find(site->frame, site->frames, site->modules, name);
}

static struct site *find_site(const struct trace_start *start)
{
    if (ATOMIC_LOAD_RELAXED(&sample_is_for_observer))
        return site_find(&start->caller, 1, 0, "");
    struct heap *heap = heap_of_thread();
    struct sampler *sampler = heap ? begin_stack(heap) : NULL;
    if (!sampler)
        return NULL;
    int kept = errno;
    struct site *site = unwind_site(&sampler->stack, start);
    if (SCOPES && scope_is_entered())
        site = site_in_scope(site);
    errno = kept;
    sampler->busy = false;
    return site;
}

/* The site where a guarded block is freed; NULL: it cannot be found now. */
static struct site *site_of_free(const struct trace_start *start)
{
    int type = cancel_put_off();
    struct site *site = find_site(start);
    cancel_restore(type);
    return site;
}

void sampler_forget(struct heap *heap)
{
    if (heap->sampler)
        heap->sampler->thread = 0; /* a thread may get the id of one that ended */
}

/* ---- Births ---------------------------------------------------------------------------------- */

static uint64_t sampled_bytes(const struct sample *sample)
{
    return (size_max(sample->requested_bytes, 1) * sample->parts + SITE_PARTS / 2) / SITE_PARTS;
}

static void tell_log(struct sample *sample, size_t usable, bool guarded)
{
    const struct site *site = sample->site;
    if (!log_knows_site(site->number))
        log_site(site->number, site->frame, site->frames, site->scope, sample->birth_ns);
    const struct log_birth birth = {
        .time_ns = sample->birth_ns,
        .requested_bytes = sample->requested_bytes,
        .usable_bytes = usable,
        .weight_bytes = sampled_bytes(sample),
        .site = site->number,
        .thread = sample->thread,
        .size_class = sample->size_class,
        .flags = guarded ? LOG_GUARDED : 0};
    sample->log = log_birth(&birth);
}

/* The record of a block that stands for `parts` / SITE_PARTS blocks. */
static struct sample *make_sample(
    struct site *site, size_t size, uint64_t parts, unsigned size_class)
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

/* Counts and logs the sample, whose block is about to be handed out. */
static void count_birth(struct sample *sample, void *block, size_t usable, bool guarded)
{
    struct site *site = sample->site;
    uint64_t bytes = sampled_bytes(sample);
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
    void *block, size_t size, size_t alignment, bool zero, const struct trace_start *start)
{
    struct heap *heap = heap_of_thread();
    unsigned size_class = heap->sample_class;
    uint64_t parts = due_stands_for(size_classes[size_class].size);
    const struct slab *slab = slab_lookup(block);
    heap->sample_class = CLASS_NONE;
    /* A signal handler may have popped in between, or a cancelled thread left its class here. */
    if (!parts || !slab || slab->size_class != size_class)
        return block;
    struct site *site = find_site(start);
    struct sample *sample = site ? make_sample(site, size, parts, size_class) : NULL;
    if (!sample)
        return block;
    sample->place = (uintptr_t)block;
    void *taken = NULL;
    if (UNLIKELY(is_guarded_turn()))
        taken = guard_take(sample, site, size, alignment, sample->thread);
    bool guarded = taken != NULL;
    heap = heap_enter();
    if (heap && !taken)
        taken = place_take(sample, size_class, size, alignment, zero);
    if (heap && taken)
        heap_put_back(heap, size_class, block);
    if (heap)
        heap_leave(heap);
    if (!taken) {
        sample_drop(sample);
        return block;
    }
    count_birth(sample, taken, size_classes[size_class].size, guarded);
    return taken;
}

static void count_sample_free(struct heap *heap, unsigned size_class)
{
    if (LIKELY(heap != NULL))
        heap_count_free(heap, size_class);
    else
        ATOMIC_ADD_RELAXED(&bin_of(slab_samples_shard, size_class)->direct_blocks, 1);
}

void *sample_replace(
    void *block, size_t size, size_t alignment, bool zero, const struct trace_start *start)
{
    int type = cancel_put_off();
    block = replace(block, size, alignment, zero, start);
    cancel_restore(type);
    return block;
}

/* ---- Watched blocks -------------------------------------------------------------------------- */

struct sample *sample_of(const void *block)
{
    struct region *region = page_map_lookup(block);
    if (!region)
        return guard_covers(block) ? guard_of(block)->sample : NULL;
    if (region->kind == REGION_BIG)
        return ATOMIC_LOAD_RELAXED(&((struct big *)region)->sample);
    if (SCOPES && region->kind == REGION_SCOPE)
        return scope_sample(block);
    struct slab *slab = slab_lookup(block);
    if (HARDENED)
        return slab ? (struct sample *)hardened_sample(slab) : NULL;
    return slab && slab_is_sampled(slab) ? place_look(slab, block, "realloc") : NULL;
}

size_t sample_size(const void *block, const char *call)
{
    if (guard_covers(block))
        return guard_size(guard_of(block), block, call);
    const struct sample *sample = place_look(slab_lookup(block), block, call);
    return size_classes[sample->size_class].size;
}

size_t sample_object(const void *address)
{
    static const char call[] = "malloc_object_size";
    if (guard_covers(address)) {
        const struct guard *guard = guard_of(address);
        bool live = ATOMIC_LOAD_ACQUIRE(&guard->state) == GUARD_LIVE;
        if (!live || (const char *)address < guard->block)
            return 0;
        return bytes_left(guard->block, guard_size(guard, guard->block, call), address);
    }
    struct slab *slab = slab_lookup(address);
    unsigned index = slab_index_at(slab, address);
    const struct sample *sample =
        index < slab->blocks ? ATOMIC_LOAD_ACQUIRE(slab_sample(slab, index)) : NULL;
    if (!sample)
        return 0;
    return bytes_left(slab_block(slab, index), size_classes[sample->size_class].size, address);
}

void sample_free(void *block, const struct trace_start *start)
{
    struct sample *sample = NULL;
    struct slab *slab = slab_lookup(block);
    const struct site *freed = slab ? NULL : site_of_free(start);
    struct heap *heap = heap_enter();
    if (slab)
        sample = place_end(slab, block);
    else
        sample = guard_put(guard_of(block), block, freed, identity_thread(identity_self()));
    /* Before anybody else can have the block. */
    PROBE_OTEL(1, free, block);
    count_sample_free(heap, sample->size_class);
    if (slab)
        place_put(slab, block);
    if (heap)
        heap_leave(heap);
    sample_died(sample);
}

/* ---- Big blocks, and those of the preset `hardened` ------------------------------------------ */

struct sample *sample_decide(size_t size, unsigned size_class, const struct trace_start *start)
{
    struct heap *heap = heap_of_thread();
    size_t bytes = size_class ? size_classes[size_class].size : size;
    if (!heap || !due_decide(&heap->random, bytes))
        return NULL;
    int type = cancel_put_off();
    uint64_t parts = due_stands_for(bytes);
    struct site *site = parts ? find_site(start) : NULL;
    struct sample *sample = site ? make_sample(site, size, parts, size_class) : NULL;
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

void sample_big(struct big *big, size_t size, const struct trace_start *start)
{
    struct sample *sample = sample_decide(size, CLASS_NONE, start);
    if (!sample)
        return;
    ATOMIC_STORE_RELEASE(&big->sample, sample);
    sample_begin(sample, big->region.base, big->mapped);
}

/* ---- Deaths ---------------------------------------------------------------------------------- */

static void count_death(const struct sample *sample, uint64_t now_ns, unsigned flags)
{
    struct site *site = sample->site;
    ATOMIC_ADD_RELAXED(&site->dead_samples, 1);
    ATOMIC_ADD_RELAXED(&site->dead_bytes, sampled_bytes(sample));
    ATOMIC_ADD_RELAXED(&site->dead_parts, sample->parts);
    if (flags & LOG_REMOTE)
        ATOMIC_ADD_RELAXED(&site->remote_parts, sample->parts);
    if (flags & LOG_REALLOC)
        ATOMIC_ADD_RELAXED(&site->realloc_parts, sample->parts);
    site_count_lifetime(site, os_time_between(now_ns, sample->birth_ns), sample->parts);
}

void sample_died(struct sample *sample)
{
    int type = cancel_put_off();
    struct log_death death = {.time_ns = os_clock_ns(), .thread = identity_thread(identity_self())};
    if (death.thread != sample->thread)
        death.flags |= LOG_REMOTE;
    if (sample->moves)
        death.flags |= LOG_REALLOC;
    count_death(sample, death.time_ns, death.flags);
    if (UNLIKELY(sample->log))
        log_death(sample->log, &death);
    metadata_free(sample, sizeof *sample);
    cancel_restore(type);
}

/* In the log one block ends, and another one begins that stands for as many blocks. */
static void tell_resized(struct sample *sample, size_t size)
{
    struct log_death death = {
        .time_ns = os_clock_ns(), .thread = identity_thread(identity_self()), .flags = LOG_REALLOC};
    log_death(sample->log, &death);
    sample->birth_ns = death.time_ns;
    tell_log(sample, size, false);
}

void sample_moves(const void *block)
{
    struct sample *sample = sample_of(block);
    if (sample)
        sample->moves = true;
}

void sample_resized(const void *before, void *block, size_t size)
{
    struct sample *sample = sample_of(block);
    const struct slab *slab = HARDENED ? NULL : slab_lookup(block);
    /* A block with a slab of its own may have changed its class. */
    if (slab && size_class_is_single(sample->size_class))
        sample->size_class = slab->size_class;
    if (sample->requested_bytes == size)
        return;
    int type = cancel_put_off();
    ATOMIC_ADD_RELAXED(&sample->site->dead_bytes, sampled_bytes(sample));
    sample->requested_bytes = size;
    ATOMIC_ADD_RELAXED(&sample->site->born_bytes, sampled_bytes(sample));
    PROBE_OTEL(1, free, before);
    PROBE_OTEL(3, alloc, block, size, sampled_bytes(sample));
    if (UNLIKELY(sample->log))
        tell_resized(sample, size);
    cancel_restore(type);
}
