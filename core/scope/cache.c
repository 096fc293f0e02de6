/* See cache.h. */
#include "scope/cache.h"

#include <string.h>

#include "api/alloc.h"
#include "api/perturb.h"
#include "base/poison.h"
#include "map/metadata.h"
#include "os/cancel.h"
#include "scope/span.h"
#include "trace/trace.h"

/* The first cache of the scope, or of one inside it, from that node of the tree's list on. */
static SLOW_PATH struct scope_cache *cache_from(
    struct list_node *node, const struct hakmem_scope *scope)
{
    struct scope_cache *cache = LIST_ENTRY(node, struct scope_cache, by_tree);
    while (cache && !scope_is_inside(cache->scope, scope))
        cache = LIST_ENTRY(cache->by_tree.next, struct scope_cache, by_tree);
    return cache;
}

#define FOR_CACHES(cache, scope)                                                                   \
    for (struct scope_cache * (cache) = cache_from((scope)->root->caches.first, scope); (cache);   \
         (cache) = cache_from((cache)->by_tree.next, scope))

/* Whether the block carries the mark of freed ones. */
ALWAYS_INLINE bool is_mark(const void *block)
{
    return *(const mark *)block == class_map_mark(class_map.classes);
}

SLOW_PATH void cache_shut(const struct hakmem_scope *scope, enum cache_state state)
{
    struct list_node *next = scope->root->caches.first;
    struct scope_cache *cache;
    while ((cache = cache_from(next, scope)) != NULL) {
        next = cache->by_tree.next;
        cache_change(cache, state);
    }
}

SLOW_PATH void cache_take_off(const struct hakmem_scope *scope, struct hakmem_scope_figures *usage)
{
    FOR_CACHES(cache, scope)
    for (unsigned size_class = 1; size_class < LONG_CLASS_FIRST; size_class++) {
        size_t count = ATOMIC_LOAD_RELAXED(&cache->count[size_class]);
        usage->live_blocks -= count;
        usage->live_bytes -= count * size_classes[size_class].size;
    }
}

SLOW_PATH bool cache_has(const struct hakmem_scope *scope, unsigned size_class, const void *block)
{
    if (!cache_serves(size_class))
        return false;
    /* Read only where there are caches: the block may have no page. */
    if (!scope->root->caches.first || !is_mark(block))
        return false;
    FOR_CACHES(cache, scope)
    for (unsigned i = ATOMIC_LOAD_RELAXED(&cache->count[size_class]); i-- > 0;)
        if (ATOMIC_LOAD_RELAXED(&cache->blocks[size_class][i]) == block)
            return true;
    return false;
}

/* ---- To have blocks -------------------------------------------------------------------------- */

struct scope_cache *cache_make(struct scope_entry *entry)
{
    struct scope_cache *cache = metadata_alloc(sizeof *cache);
    if (!cache)
        return NULL;
    cache->scope = entry->scope;
    cache->open = &entry->open;
    for (unsigned size_class = 1, at = 1; size_class < LONG_CLASS_FIRST; size_class++)
        while (at <= size_classes[size_class].size / MIN_ALIGNMENT)
            cache->class_of[at++] = (uint8_t)size_class;
    return cache;
}

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

void cache_fill(struct scope_cache *cache, struct hakmem_scope *scope, struct slab *slab)
{
    void *blocks[SCOPE_CACHED / 2];
    unsigned size_class = slab->size_class;
    size_t size = size_classes[size_class].size;
    if (cache->state == CACHE_GONE && scope_has_room(scope, MIB) && !perturb_is_on()) {
        cache->span = span_of(slab->base);
        open_cache(cache);
    }
    if (cache->state != CACHE_OPEN)
        return;
    ATOMIC_STORE_RELAXED(cache->open, cache);
    if (cache->count[size_class])
        return;
    unsigned count = slab_take(slab, blocks, SCOPE_CACHED / 2);
    poison_blocks(blocks, count, size);
    scope_count(scope, count * size, count);
    memcpy(cache->blocks[size_class], blocks, sizeof blocks);
    ATOMIC_STORE_RELAXED(&cache->count[size_class], (uint8_t)count);
}

/* ---- Hits ------------------------------------------------------------------------------------ */

/* A block of the class from an open cache; NULL: it has none. FORGET: so the address of the block
 * is one instruction from the count, on which the next call waits. */
ALWAYS_INLINE void *take_at_hand(struct scope_cache *cache, size_t size_class)
{
    size_t count = cache->count[size_class];
    if (UNLIKELY(!count))
        return NULL;
    void **blocks = cache->blocks[size_class];
    FORGET(blocks);
    void *block = blocks[count - 1];
    ATOMIC_STORE_RELAXED(&cache->count[size_class], (uint8_t)(count - 1));
    cache_unmark(block, (unsigned)size_class);
    return block;
}

ALWAYS_INLINE void put_at_hand(struct scope_cache *cache, size_t size_class, void *block)
{
    size_t count = cache->count[size_class];
    void **blocks = cache->blocks[size_class];
    FORGET(blocks);
    cache_mark(block, (unsigned)size_class);
    ATOMIC_STORE_RELAXED(&blocks[count], block);
    ATOMIC_STORE_RELAXED(&cache->count[size_class], (uint8_t)(count + 1));
}

void *cache_pop(unsigned size_class)
{
    struct scope_cache *cache = ATOMIC_LOAD_RELAXED(&scope_entered->open);
    return cache && cache_serves(size_class) ? take_at_hand(cache, size_class) : NULL;
}

static SLOW_PATH void *malloc_missed(size_t size)
{
    unsigned size_class = size <= LARGE_MAX ? size_class_of(size) : CLASS_NONE;
    return alloc_any(size, MIN_ALIGNMENT, size_class, false);
}

void *scope_malloc(size_t size, const struct scope_entry *entry)
{
    struct scope_cache *cache = ATOMIC_LOAD_RELAXED(&entry->open);
    if (UNLIKELY(!cache || size > SHORT_MAX || trace_samples()))
        return malloc_missed(size);
    void *block = take_at_hand(cache, cache->class_of[(size + MIN_ALIGNMENT - 1) / MIN_ALIGNMENT]);
    return LIKELY(block != NULL) ? block : malloc_missed(size);
}

static SLOW_PATH void push_overflow(struct scope_cache *cache, unsigned size_class, void *block)
{
    int type = cancel_put_off();
    cache_flush(cache, size_class, SCOPE_CACHED / 2);
    cancel_restore(type);
    /* The cache stays full if its scope was reset or destroyed meanwhile. */
    free_slow(block);
}

/* Frees a block that does not lie in the span of the last one. */
static SLOW_PATH void release_elsewhere(struct scope_cache *cache, void *block)
{
    const struct span *span = span_of(block);
    if (span && span->region.kind == REGION_SCOPE && span->scope == cache->scope) {
        cache->span = span;
        release(block);
    } else {
        free_slow(block);
    }
}

/* The record of a span that has ended has no addresses, or others, or is one of another scope. */
void scope_release(void *block, const struct scope_entry *entry)
{
    struct scope_cache *cache = ATOMIC_LOAD_RELAXED(&entry->open);
    if (UNLIKELY(!cache)) {
        free_slow(block);
        return;
    }
    const struct span *span = cache->span;
    size_t offset = (uintptr_t)block - (uintptr_t)LOAD_HOT(&span->region.base);
    if (UNLIKELY(offset >= REGION_SIZE || LOAD_HOT(&span->scope) != cache->scope)) {
        release_elsewhere(cache, block);
        return;
    }
    size_t size_class = ATOMIC_LOAD_RELAXED(&span->class_of_unit[offset >> UNIT_SHIFT]);
    if (UNLIKELY(size_class == CLASS_NONE || is_mark(block)))
        free_slow(block);
    else if (LIKELY(cache->count[size_class] < SCOPE_CACHED))
        put_at_hand(cache, size_class, block);
    else
        push_overflow(cache, (unsigned)size_class, block);
}
