/* Blocks of scopes: takes and frees them, under the lock of the scope's tree.
 *
 * A short or long block is a bit in its slab, as everywhere, so a second free of it is seen at
 * once. A span or the record of a slab is made before the lock is taken, for a try that found none.
 */
#include <string.h>

#include "api/perturb.h"
#include "base/sparse.h"
#include "base/tuning.h"
#include "os/cancel.h"
#include "os/fatal.h"
#include "os/os.h"
#include "reclaim/engine.h"
#include "scope/span.h"
#include "thread/heap.h"

/* What a request asks for. */
struct request {
    size_t bytes;        /* usable ones of the block */
    size_t alignment;    /* of a block with a span or slab of its own */
    unsigned size_class; /* CLASS_NONE: a block with a span */
    struct slab *record; /* made for the request, if it is not NULL, as is the span */
    struct span *span;
    bool huge;  /* the span shall have huge pages */
    bool clean; /* the block reads as zero */
};

/* ---- Taking ---------------------------------------------------------------------------------- */

static void *take_from(struct slab *slab, struct request *request)
{
    void *block = NULL;
    unsigned watermark = slab->watermark;
    slab_take(slab, &block, 1);
    request->clean = slab->clean && slab->watermark > watermark;
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
        return span ? span->region.base : NULL;
    }
    /* Small blocks of a scope that has grown. */
    request->huge = !size_class_is_single(request->size_class) && scope->spans >= SCOPE_SMALL_SPANS;
    struct list_node *node =
        request->alignment > UNIT_SIZE ? NULL : scope->slabs[request->size_class].first;
    struct slab *slab = LIST_ENTRY(node, struct slab, by_fullness);
    if (!slab && request->record &&
        span_start_slab(
            scope, request->record, request->size_class,
            (unsigned)(request->alignment >> UNIT_SHIFT))) {
        slab = request->record;
        request->record = NULL;
    }
    return slab ? take_from(slab, request) : NULL;
}

/* Makes what a try has lacked. False: no memory. */
static bool prepare_request(struct hakmem_scope *scope, struct request *request)
{
    if (request->size_class && !request->record)
        return (request->record = span_make_record(request->size_class)) != NULL;
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

static void *serve(struct scope_entry *entry, struct request *request)
{
    struct hakmem_scope *scope = entry->scope;
    bool may_make_room = true;
    for (;;) {
        scope_lock(scope, "malloc");
        if (UNLIKELY(scope->number != entry->number)) {
            scope_unlock(scope);
            scope_end_used(scope, "malloc");
        }
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

void *scope_alloc(size_t size, size_t alignment, unsigned size_class, bool zero)
{
    struct request request = {.alignment = alignment, .size_class = size_class};
    if (!size_class && size <= LARGE_MAX && alignment <= REGION_SIZE)
        request.size_class = size_class_single(size);
    request.bytes = request.size_class ? size_classes[request.size_class].size
                                       : round_up(size_max(size, REGION_SIZE), os_page_size());
    int type = cancel_put_off();
    void *block = serve(scope_entered, &request);
    end_request(&request);
    cancel_restore(type);
    if (!block || !zero || request.clean)
        return block;
    size_t words = size > MID_MAX ? round_down(size, sizeof(uint64_t)) : 0;
    if (words)
        sparse_clear(block, words);
    memset((char *)block + words, 0, size - words);
    return block;
}

/* ---- Blocks by their address ----------------------------------------------------------------- */

/* Where a block lies. */
struct found {
    struct span *span;
    struct slab *slab; /* NULL: the block has the span */
};

/* Finds the slab of the pointer. Returns how the pointer is wrong, or NULL. The lock. */
static const char *is_wrong(struct found *found, const void *block)
{
    static const char no_start[] = "invalid pointer", free_block[] = "double free of";
    struct span *span = found->span;
    if (!span->listed)
        return free_block;
    if (span->is_block)
        return block == span->region.base ? NULL : no_start;
    const struct slab *slab = found->slab = span->slab_of_unit[superslab_unit_of(block)];
    if (!slab)
        return free_block;
    size_t offset = (size_t)((const char *)block - slab->base);
    size_t index = size_class_exact_index(&size_classes[slab->size_class], offset);
    if (index >= slab->blocks)
        return no_start;
    return bitmap_test(slab->free, (unsigned)index) ? free_block : NULL;
}

/* Finds a live block and locks the tree of its scope. Aborts, naming `call`, if none starts there.
 */
static struct found find(const void *block, const char *call)
{
    struct found found = {.span = span_of(block)};
    struct hakmem_scope *scope = found.span->scope;
    scope_lock(scope, call);
    const char *wrong = is_wrong(&found, block);
    if (LIKELY(!wrong))
        return found;
    scope_unlock(scope);
    fatal_scope(call, wrong, block, scope->was_reset ? ": in the reset " : ": in ", scope->name);
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

size_t scope_object(const void *address)
{
    struct span *span = span_of(address);
    const struct slab *slab =
        span->is_block ? NULL : span->slab_of_unit[superslab_unit_of(address)];
    if (!slab)
        return span->is_block ? bytes_left(span->region.base, span->bytes, address) : 0;
    unsigned index = slab_index_at(slab, address);
    size_t bytes = size_classes[slab->size_class].size;
    return index < slab->blocks ? bytes_left(slab_block(slab, index), bytes, address) : 0;
}

/* ---- Freeing --------------------------------------------------------------------------------- */

/* Puts the block into its slab. Returns the slab if that has ended: it stays while it is the only
 * one of its class with free blocks. `*gone`: a span to unmap, if it is not NULL. */
static struct slab *put_found(struct found found, void *block, struct span **gone)
{
    struct slab *slab = found.slab;
    struct list *list = &found.span->scope->slabs[slab->size_class];
    slab_put(slab, &block, 1);
    if (slab->free_blocks == 1)
        list_push(list, &slab->by_fullness);
    if (slab->free_blocks < slab->blocks)
        return NULL;
    if (!size_class_is_single(slab->size_class) && list->first == &slab->by_fullness &&
        !slab->by_fullness.next)
        return NULL;
    *gone = span_end_slab(slab);
    return slab;
}

void scope_free(void *block)
{
    int type = cancel_put_off();
    struct found found = find(block, "free");
    struct hakmem_scope *scope = found.span->scope;
    size_t bytes = usable_of(found);
    struct slab *ended = NULL;
    struct span *gone = NULL;
    if (UNLIKELY(perturb_is_on()) && found.slab)
        perturb_freed(block, bytes);
    if (found.slab)
        ended = put_found(found, block, &gone);
    else
        span_unlist(gone = found.span);
    scope_count(scope, -bytes, (size_t)-1);
    scope_unlock(scope);
    if (ended)
        span_free_record(ended);
    if (gone)
        span_unmap(gone);
    cancel_restore(type);
}
