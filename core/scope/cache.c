/* See cache.h. */
#include "scope/cache.h"

#include "api/perturb.h"
#include "base/poison.h"
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

/* Whether the block carries the mark of cached ones. */
static bool is_mark(const void *block)
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
    if (size_class >= LONG_CLASS_FIRST)
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

/* ---- Hits ------------------------------------------------------------------------------------ */

static bool is_open(const struct scope_cache *cache)
{
    return ATOMIC_LOAD_RELAXED(&cache->state) == CACHE_OPEN && LIKELY(!perturb_is_on());
}

void *cache_pop(unsigned size_class)
{
    struct scope_cache *cache = scope_entered->cache;
    if (!cache || size_class >= LONG_CLASS_FIRST)
        return NULL;
    unsigned count = cache->count[size_class];
    if (UNLIKELY(!count || !is_open(cache)))
        return NULL;
    void *block = cache->blocks[size_class][count - 1];
    ATOMIC_STORE_RELAXED(&cache->count[size_class], (uint8_t)(count - 1));
    cache_unmark(block, size_class);
    return block;
}

void *scope_pop(unsigned size_class)
{
    return trace_samples() ? NULL : cache_pop(size_class);
}

static void put_at_hand(struct scope_cache *cache, unsigned size_class, void *block)
{
    unsigned count = cache->count[size_class];
    *(mark *)block = class_map_mark(class_map.classes);
    poison_block(block, size_classes[size_class].size);
    ATOMIC_STORE_RELAXED(&cache->blocks[size_class][count], block);
    ATOMIC_STORE_RELAXED(&cache->count[size_class], (uint8_t)(count + 1));
}

static SLOW_PATH bool push_overflow(struct scope_cache *cache, unsigned size_class, void *block)
{
    int type = cancel_put_off();
    cache_flush(cache, size_class, SCOPE_CACHED / 2);
    cancel_restore(type);
    put_at_hand(cache, size_class, block);
    return true;
}

/* Whether the bit of the block, or the mark on it, says that it is free, without the lock: the bits
 * of other blocks may change meanwhile, which a sanitizer would see. */
__attribute__((no_sanitize("thread"))) static bool may_be_free(
    const struct slab *slab, size_t index, const void *block)
{
    return bitmap_test(slab->free, (unsigned)index) || is_mark(block);
}

bool scope_push(void *block)
{
    struct scope_cache *cache = scope_entered->cache;
    const struct span *span = span_of(block);
    if (!cache || !span || span->region.kind != REGION_SCOPE || span->scope != cache->scope)
        return false;
    /* Who ends the blocks meanwhile shuts the cache first, and then the records of slabs: what is
     * read of one that serves again goes nowhere. */
    const struct slab *slab = ATOMIC_LOAD_RELAXED(&span->slab_of_unit[superslab_unit_of(block)]);
    unsigned size_class = slab ? ATOMIC_LOAD_RELAXED(&slab->size_class) : LONG_CLASS_FIRST;
    if (UNLIKELY(size_class >= LONG_CLASS_FIRST || slab_is_sampled(slab) || !is_open(cache)))
        return false;
    const struct size_class *layout = &size_classes[size_class];
    size_t index = size_class_exact_index(layout, (size_t)((char *)block - slab->base));
    if (UNLIKELY(index >= layout->blocks || may_be_free(slab, index, block)))
        return false;
    if (UNLIKELY(cache->count[size_class] == SCOPE_CACHED))
        return push_overflow(cache, size_class, block);
    put_at_hand(cache, size_class, block);
    return true;
}
