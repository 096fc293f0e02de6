/* Blocks of scopes: takes and frees them, by the thread's cache or under the lock of the tree.
 *
 * A short or long block is a bit in its slab, as everywhere, so a second free of it is seen at
 * once. A span or the record of a slab is made before the lock is taken, for a try that found none.
 */
#include <string.h>

#include "api/perturb.h"
#include "base/sparse.h"
#include "base/tuning.h"
#include "map/metadata.h"
#include "os/cancel.h"
#include "os/fatal.h"
#include "os/os.h"
#include "reclaim/engine.h"
#include "scope/cache.h"
#include "scope/span.h"
#include "thread/heap.h"
#include "trace/trace.h"

/* What a request asks for. */
struct request {
    size_t bytes;        /* usable ones of the block */
    size_t alignment;    /* of a block with a span or slab of its own */
    unsigned size_class; /* CLASS_NONE: a block with a span */
    struct slab *record; /* made for the request, if it is not NULL, as is the span */
    struct span *span;
    struct sample *sample; /* the block is to be this one; NULL: none */
    bool clean;            /* the block reads as zero */
};

/* ---- Taking ---------------------------------------------------------------------------------- */

static void *take_from(struct hakmem_scope *scope, struct slab *slab, struct request *request)
{
    void *block = NULL;
    unsigned watermark = slab->watermark;
    slab_take(slab, &block, 1);
    bool fresh = slab->watermark > watermark;
    request->clean = slab->clean && fresh;
    if (!fresh && cache_serves(slab->size_class))
        cache_unmark(block, slab->size_class);
    struct scope_cache *cache = scope_entered->cache;
    if (UNLIKELY(request->sample != NULL))
        ATOMIC_STORE_RELAXED(span_sample(slab, block), request->sample);
    else if (cache && cache_serves(slab->size_class))
        cache_fill(cache, scope, slab);
    if (!slab->free_blocks)
        list_remove(&slab->by_fullness);
    return block;
}

/* A block by what lies there or was made for the request; NULL: more has to be made. The lock. */
static void *take_block(struct hakmem_scope *scope, struct request *request)
{
    struct span *span = request->span;
    struct slab *record = request->record;
    unsigned size_class = request->size_class;
    if (span)
        span_list(span);
    request->span = NULL;
    struct list *list = &scope->slabs[request->sample != NULL][size_class];
    struct list_node *node = size_class && request->alignment <= UNIT_SIZE ? list->first : NULL;
    if (node)
        return take_from(scope, CONTAINER_OF(node, struct slab, by_fullness), request);
    unsigned alignment = (unsigned)(request->alignment >> UNIT_SHIFT);
    bool started = size_class ? record && span_start_slab(scope, record, alignment)
                              : span && span_start_block(span, record);
    if (!started)
        return NULL;
    request->record = NULL;
    return take_from(scope, record, request);
}

/* Makes what a try has lacked. False: no memory. */
static bool prepare_request(struct hakmem_scope *scope, struct request *request)
{
    if (!request->record) {
        request->record = span_make_record(request->size_class, request->sample);
        if (!request->record || request->size_class)
            return request->record;
    }
    /* Huge pages for small blocks of a scope that has grown. */
    bool small = request->size_class && !size_class_is_single(request->size_class);
    bool huge = small && ATOMIC_LOAD_RELAXED(&scope->spans) >= SCOPE_SMALL_SPANS;
    size_t bytes = request->size_class ? REGION_SIZE : request->bytes;
    request->span = span_map(scope, bytes, request->alignment, huge);
    return request->span;
}

/* Ends what a request did not need. */
static void end_request(struct request *request)
{
    if (request->record)
        span_free_record(request->record);
    if (request->span)
        span_unmap(request->span);
}

/* Gives back what the process has free elsewhere; false: trying again is in vain. */
static bool make_room_for(size_t bytes, unsigned effort)
{
    struct heap *heap = heap_enter();
    bool made = heap && reclaim_for(heap, bytes, effort);
    if (heap)
        heap_leave(heap);
    return made;
}

static void *serve(struct hakmem_scope *scope, struct request *request)
{
    for (unsigned effort = 0;;) {
        scope_lock(scope, "malloc");
        struct hakmem_scope *full = scope_at_limit(scope, request->bytes);
        void *block = full ? NULL : take_block(scope, request);
        if (block)
            scope_count(scope, request->bytes, 1);
        scope_unlock(scope);
        if (LIKELY(block != NULL))
            return block;
        if (full ? scope_ask(full, request->bytes) : prepare_request(scope, request))
            continue;
        if (full || !make_room_for(request->bytes, effort++))
            return NULL;
    }
}

/* Makes the calling thread a cache if that pays, and empties it of what has to go back. */
static void prepare_cache(struct scope_entry *entry)
{
    if (!entry->cache && ++entry->calls == SCOPE_PAYS)
        entry->cache = cache_make(entry);
    struct scope_cache *cache = entry->cache;
    if (cache && ATOMIC_LOAD_RELAXED(&cache->state) == CACHE_SHUT)
        cache_empty(cache);
}

/* A block without a cache; the arguments are those of scope_alloc. */
static SLOW_PATH void *alloc_locked(
    size_t size, size_t alignment, unsigned size_class, bool zero, struct sample *sample)
{
    struct request request = {.alignment = alignment, .size_class = size_class, .sample = sample};
    if (!size_class && size <= LARGE_MAX && alignment <= REGION_SIZE)
        request.size_class = size_class_single(size);
    request.bytes = request.size_class ? size_classes[request.size_class].size
                                       : round_up(size_max(size, REGION_SIZE + 1), os_page_size());
    int type = cancel_put_off();
    prepare_cache(scope_entered);
    void *block = serve(scope_entered->scope, &request);
    end_request(&request);
    cancel_restore(type);
    if (UNLIKELY(sample != NULL)) {
        if (block)
            trace_now()->begin(sample, block, request.bytes);
        else
            trace_now()->drop(sample);
    }
    if (!block || !zero || request.clean)
        return block;
    size_t words = size > MID_MAX ? round_down(size, sizeof(uint64_t)) : 0;
    if (words)
        sparse_clear(block, words);
    memset((char *)block + words, 0, size - words);
    return block;
}

void *scope_alloc(
    size_t size, size_t alignment, unsigned size_class, bool zero, const struct trace_start *start)
{
    struct sample *sample = trace_samples() ? trace_now()->decide(size, size_class, start) : NULL;
    void *block = sample ? NULL : cache_pop(size_class);
    if (!block)
        return alloc_locked(size, alignment, size_class, zero, sample);
    return zero ? memset(block, 0, size) : block;
}

/* ---- Blocks by their address ----------------------------------------------------------------- */

#define NO_START "invalid pointer"
#define FREE_BLOCK "double free of"

/* Aborts, since the pointer is wrong. Opens the lock. */
static _Noreturn SLOW_PATH void refuse(
    struct hakmem_scope *scope, const char *wrong, const void *block, const char *call)
{
    scope_unlock(scope);
    fatal_scope(call, wrong, block, scope->was_reset ? ": in the reset " : ": in ", scope->name);
}

/* Finds the slab of the pointer, which lay in that span. Returns how the pointer is wrong, or NULL.
 * The lock. */
static const char *is_wrong(const struct span *span, const void *block, struct slab **found)
{
    if (!span || span->region.kind != REGION_SCOPE || !span->listed)
        return FREE_BLOCK;
    const struct slab *slab = *found = span->slab_of_unit[superslab_unit_of(block)];
    if (!slab)
        return FREE_BLOCK;
    size_t index = (size_t)((const char *)block - slab->base);
    if (slab->size_class)
        index = size_class_exact_index(&size_classes[slab->size_class], index);
    if (index >= slab->blocks)
        return NO_START;
    return bitmap_test(slab->free, (unsigned)index) ? FREE_BLOCK : NULL;
}

/* Finds the slab of a live block, and locks the tree of its scope. Aborts, naming `call`, if none
 * starts there. */
static struct slab *find(const struct span *span, const void *block, const char *call)
{
    struct slab *slab;
    struct hakmem_scope *scope = span->scope;
    if (UNLIKELY(!scope_try_lock(scope)))
        fatal_scope(call, FREE_BLOCK, block, ": in the ended ", scope->name);
    const char *wrong = is_wrong(span, block, &slab);
    if (!wrong && cache_has(scope, slab->size_class, block))
        wrong = FREE_BLOCK;
    if (LIKELY(!wrong))
        return slab;
    refuse(scope, wrong, block, call);
}

size_t scope_size(const void *block, const char *call)
{
    const struct span *span = span_of(block);
    int type = cancel_put_off();
    size_t bytes = span_block_bytes(find(span, block, call));
    scope_unlock(span->scope);
    cancel_restore(type);
    return bytes;
}

/* ---- Freeing --------------------------------------------------------------------------------- */

/* What frees leave for the time without the lock: lists of slabs and of spans. */
enum { ENDED_SLABS, ENDED_SPANS, ENDED };

/* Ends a live block. Its slab ends when it is empty, unless it is the only one of its class with
 * free blocks. The lock. */
static void end_block(
    struct hakmem_scope *scope, struct slab *slab, void *block, struct list *ended)
{
    struct list *list = span_slabs(scope, slab);
    scope_count(scope, -span_block_bytes(slab), (size_t)-1);
    if (slab->size_class)
        slab_put(slab, &block, 1);
    else
        slab->free_blocks = 1;
    if (slab->free_blocks == 1)
        list_push(list, &slab->by_fullness);
    bool shared = slab->size_class && !size_class_is_single(slab->size_class);
    bool alone = list->first == &slab->by_fullness && !slab->by_fullness.next;
    if (slab->free_blocks < slab->blocks || (shared && alone))
        return;
    struct span *gone = span_end_slab(slab);
    list_push(&ended[ENDED_SLABS], &slab->by_fullness);
    if (gone)
        list_push(&ended[ENDED_SPANS], &gone->by_fullness);
}

static void end_all(struct list *ended)
{
    struct list_node *node;
    while ((node = ended[ENDED_SLABS].first) != NULL) {
        list_remove(node);
        span_free_record(CONTAINER_OF(node, struct slab, by_fullness));
    }
    while ((node = ended[ENDED_SPANS].first) != NULL) {
        list_remove(node);
        span_unmap(span_by_node(node));
    }
}

void cache_flush(struct scope_cache *cache, unsigned size_class, unsigned keep)
{
    struct list ended[ENDED] = {{NULL}, {NULL}};
    struct hakmem_scope *scope = cache->scope;
    uint8_t *count = &cache->count[size_class];
    if (!scope_try_lock(scope))
        return;
    while (*count > keep && cache->state != CACHE_GONE) {
        /* First the count: in a child of fork, a block that was on its way stays live. */
        ATOMIC_STORE_RELAXED(count, (uint8_t)(*count - 1));
        KEEP_STORE_ORDER();
        void *block = cache->blocks[size_class][*count];
        struct slab *slab;
        const char *wrong = is_wrong(span_of(block), block, &slab);
        if (UNLIKELY(wrong != NULL))
            refuse(scope, wrong, block, "free");
        end_block(scope, slab, block, ended);
    }
    scope_unlock(scope);
    end_all(ended);
}

void cache_empty(struct scope_cache *cache)
{
    struct hakmem_scope *scope = cache->scope;
    for (unsigned size_class = 1; size_class < LONG_CLASS_FIRST; size_class++)
        if (cache->count[size_class])
            cache_flush(cache, size_class, 0);
    if (scope_try_lock(scope)) {
        if (cache->state != CACHE_GONE)
            cache_change(cache, CACHE_GONE);
        scope_unlock(scope);
    }
}

static struct sample *take_sample(struct slab *slab, const void *block)
{
    struct sample **place = span_sample(slab, block);
    struct sample *sample = place ? *place : NULL;
    if (UNLIKELY(sample != NULL)) {
        ATOMIC_STORE_RELAXED(place, NULL);
        PROBE_OTEL(1, free, block);
    }
    return sample;
}

void scope_free(void *block)
{
    struct list ended[ENDED] = {{NULL}, {NULL}};
    const struct span *span = span_of(block);
    struct hakmem_scope *scope = span->scope;
    int type = cancel_put_off();
    struct slab *slab = find(span, block, "free");
    if (UNLIKELY(perturb_is_on()) && slab->size_class)
        perturb_freed(block, span_block_bytes(slab));
    struct sample *sample = take_sample(slab, block);
    if (cache_serves(slab->size_class))
        cache_mark(block, slab->size_class);
    end_block(scope, slab, block, ended);
    scope_unlock(scope);
    end_all(ended);
    if (UNLIKELY(sample != NULL))
        trace_now()->died(sample);
    cancel_restore(type);
}
