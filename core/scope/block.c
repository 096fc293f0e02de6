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
    bool huge;             /* the span shall have huge pages */
    bool clean;            /* the block reads as zero */
};

/* ---- Taking ---------------------------------------------------------------------------------- */

/* The lock. */
static void open_cache(struct scope_cache *cache)
{
    memset(cache->count, 0, sizeof cache->count);
    struct list *list = &cache->scope->root->caches;
    /* For children of fork: see repair_caches. */
    cache->by_tree.next = list->first;
    KEEP_STORE_ORDER();
    list_push(list, &cache->by_tree);
    KEEP_STORE_ORDER();
    ATOMIC_STORE_RELAXED(&cache->state, CACHE_OPEN);
}

/* Opens a cache of which nothing is left, unless a limit is not far, and puts a batch of the slab's
 * blocks into it. The lock. */
static void fill_cache(struct scope_cache *cache, struct hakmem_scope *scope, struct slab *slab)
{
    void *blocks[SCOPE_CACHED / 2];
    unsigned size_class = slab->size_class;
    size_t size = size_classes[size_class].size;
    if (cache->state == CACHE_GONE && scope_has_room(scope, MIB))
        open_cache(cache);
    if (cache->state != CACHE_OPEN || cache->count[size_class])
        return;
    unsigned count = slab_take(slab, blocks, SCOPE_CACHED / 2);
    poison_blocks(blocks, count, size);
    scope_count(scope, count * size, count);
    memcpy(cache->blocks[size_class], blocks, sizeof blocks);
    ATOMIC_STORE_RELAXED(&cache->count[size_class], (uint8_t)count);
}

static void *take_from(struct hakmem_scope *scope, struct slab *slab, struct request *request)
{
    void *block = NULL;
    unsigned watermark = slab->watermark;
    slab_take(slab, &block, 1);
    bool fresh = slab->watermark > watermark;
    request->clean = slab->clean && fresh;
    if (!fresh && !size_class_is_long(slab->size_class))
        cache_unmark(block, slab->size_class);
    struct scope_cache *cache = scope_entered->cache;
    if (UNLIKELY(request->sample != NULL))
        ATOMIC_STORE_RELAXED(span_sample(NULL, slab, block), request->sample);
    else if (cache && !size_class_is_long(slab->size_class))
        fill_cache(cache, scope, slab);
    if (!slab->free_blocks)
        list_remove(&slab->by_fullness);
    return block;
}

/* A block by what lies there or was made for the request; NULL: more has to be made. The lock. */
static void *take_block(struct hakmem_scope *scope, struct request *request)
{
    struct span *span = request->span;
    if (span) {
        span_list(span);
        request->span = NULL;
    }
    if (!request->size_class) {
        request->clean = true;
        if (span)
            span->sample = request->sample;
        return span ? span->region.base : NULL;
    }
    /* Small blocks of a scope that has grown. */
    request->huge = !size_class_is_single(request->size_class) && scope->spans >= SCOPE_SMALL_SPANS;
    struct list *list = &scope->slabs[request->sample != NULL][request->size_class];
    struct list_node *node = request->alignment > UNIT_SIZE ? NULL : list->first;
    struct slab *slab = LIST_ENTRY(node, struct slab, by_fullness);
    if (!slab && request->record &&
        span_start_slab(scope, request->record, (unsigned)(request->alignment >> UNIT_SHIFT))) {
        slab = request->record;
        request->record = NULL;
    }
    return slab ? take_from(scope, slab, request) : NULL;
}

/* Makes what a try has lacked. False: no memory. */
static bool prepare_request(struct hakmem_scope *scope, struct request *request)
{
    if (request->size_class && !request->record)
        return (request->record = span_make_record(request->size_class, request->sample)) != NULL;
    size_t bytes = request->size_class ? REGION_SIZE : request->bytes;
    request->span = span_map(scope, bytes, request->alignment, request->huge);
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
static bool make_room_for(size_t bytes)
{
    struct heap *heap = heap_enter();
    bool made = heap && reclaim_for(heap, bytes);
    if (heap)
        heap_leave(heap);
    return made;
}

static void *serve(struct hakmem_scope *scope, struct request *request)
{
    bool may_make_room = true;
    for (;;) {
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
        if (full || !may_make_room || !make_room_for(request->bytes))
            return NULL;
        may_make_room = false;
    }
}

/* One that is gone; NULL: there is no memory. */
static struct scope_cache *make_cache(struct hakmem_scope *scope)
{
    struct scope_cache *cache = metadata_alloc(sizeof *cache);
    if (cache)
        cache->scope = scope;
    return cache;
}

/* Makes the calling thread a cache if that pays, and empties it of what has to go back. */
static void prepare_cache(struct scope_entry *entry)
{
    if (!entry->cache && ++entry->calls == SCOPE_PAYS)
        entry->cache = make_cache(entry->scope);
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
                                       : round_up(size_max(size, REGION_SIZE), os_page_size());
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

/* Where a block lies. */
struct found {
    struct span *span;
    struct slab *slab; /* NULL: the block has the span */
};

#define NO_START "invalid pointer"
#define FREE_BLOCK "double free of"

/* Aborts, since the pointer is wrong. Opens the lock. */
static _Noreturn SLOW_PATH void refuse(
    struct hakmem_scope *scope, const char *wrong, const void *block, const char *call)
{
    scope_unlock(scope);
    fatal_scope(call, wrong, block, scope->was_reset ? ": in the reset " : ": in ", scope->name);
}

/* Finds the slab of the pointer. Returns how the pointer is wrong, or NULL. The lock. */
static const char *is_wrong(struct found *found, const void *block)
{
    struct span *span = found->span;
    if (!span->listed)
        return FREE_BLOCK;
    if (span->is_block)
        return block == span->region.base ? NULL : NO_START;
    const struct slab *slab = found->slab = span->slab_of_unit[superslab_unit_of(block)];
    if (!slab)
        return FREE_BLOCK;
    size_t offset = (size_t)((const char *)block - slab->base);
    size_t index = size_class_exact_index(&size_classes[slab->size_class], offset);
    if (index >= slab->blocks)
        return NO_START;
    return bitmap_test(slab->free, (unsigned)index) ? FREE_BLOCK : NULL;
}

/* Finds a live block and locks the tree of its scope. Aborts, naming `call`, if none starts there.
 */
static struct found find(const void *block, const char *call)
{
    struct found found = {.span = span_of(block)};
    struct hakmem_scope *scope = found.span->scope;
    if (UNLIKELY(!scope_try_lock(scope)))
        fatal_scope(call, FREE_BLOCK, block, ": in the ended ", scope->name);
    const char *wrong = is_wrong(&found, block);
    if (!wrong && found.slab && cache_has(scope, found.slab->size_class, block))
        wrong = FREE_BLOCK;
    if (LIKELY(!wrong))
        return found;
    refuse(scope, wrong, block, call);
}

static size_t usable_of(struct found found)
{
    return found.slab ? size_classes[found.slab->size_class].size : found.span->bytes;
}

size_t scope_size(const void *block, const char *call)
{
    int type = cancel_put_off();
    struct found found = find(block, call);
    size_t bytes = usable_of(found);
    scope_unlock(found.span->scope);
    cancel_restore(type);
    return bytes;
}

/* ---- Freeing --------------------------------------------------------------------------------- */

/* What frees leave for the time without the lock: lists of slabs and of spans. */
enum { ENDED_SLABS, ENDED_SPANS, ENDED };

/* Puts the block into its slab. That ends when it is empty, unless it is the only one of its class
 * with free blocks. */
static void put_in_slab(struct found found, void *block, struct list *ended)
{
    struct slab *slab = found.slab;
    struct list *list = span_slabs(found.span->scope, slab);
    slab_put(slab, &block, 1);
    if (slab->free_blocks == 1)
        list_push(list, &slab->by_fullness);
    if (slab->free_blocks < slab->blocks ||
        (!size_class_is_single(slab->size_class) && list->first == &slab->by_fullness &&
         !slab->by_fullness.next))
        return;
    struct span *gone = span_end_slab(slab);
    list_push(&ended[ENDED_SLABS], &slab->by_fullness);
    if (gone)
        list_push(&ended[ENDED_SPANS], &gone->by_fullness);
}

/* Ends a live block. The lock. */
static void end_block(struct found found, void *block, struct list *ended)
{
    scope_count(found.span->scope, -usable_of(found), (size_t)-1);
    if (found.slab) {
        put_in_slab(found, block, ended);
    } else {
        span_unlist(found.span);
        list_push(&ended[ENDED_SPANS], &found.span->by_fullness);
    }
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
        struct found found = {.span = span_of(block)};
        const char *wrong = is_wrong(&found, block);
        if (UNLIKELY(wrong != NULL))
            refuse(scope, wrong, block, "free");
        end_block(found, block, ended);
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

static struct sample *take_sample(struct found found, const void *block)
{
    struct sample **place = span_sample(found.span, found.slab, block);
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
    int type = cancel_put_off();
    struct found found = find(block, "free");
    struct hakmem_scope *scope = found.span->scope;
    if (UNLIKELY(perturb_is_on()) && found.slab)
        perturb_freed(block, usable_of(found));
    struct sample *sample = take_sample(found, block);
    end_block(found, block, ended);
    scope_unlock(scope);
    end_all(ended);
    if (UNLIKELY(sample != NULL))
        trace_now()->died(sample);
    cancel_restore(type);
}
