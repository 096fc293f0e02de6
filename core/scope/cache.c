/* See cache.h. */
#include "scope/cache.h"

#include "api/perturb.h"
#include "base/poison.h"
#include "map/metadata.h"
#include "os/cancel.h"
#include "scope/span.h"

static struct scope_cache *caches; /* atomic: release on store pairs with acquire on load */

/* The next one that is open or shut, and of which scope that is. */
static SLOW_PATH struct scope_cache *next_used(
    struct scope_cache *cache, const struct hakmem_scope *scope)
{
    while (cache && (ATOMIC_LOAD_ACQUIRE(&cache->state) == CACHE_GONE ||
                     !scope_is_inside(ATOMIC_LOAD_RELAXED(&cache->scope), scope)))
        cache = cache->next;
    return cache;
}

#define FOR_CACHES(cache, scope)                                                                   \
    for (struct scope_cache * (cache) = next_used(ATOMIC_LOAD_ACQUIRE(&caches), scope); (cache);   \
         (cache) = next_used((cache)->next, scope))

/* Whether the block carries the mark of cached ones. */
static bool is_mark(const void *block)
{
    return *(const mark *)block == class_map_mark(class_map.classes);
}

SLOW_PATH struct scope_cache *cache_make(struct hakmem_scope *scope)
{
    for (struct scope_cache *cache = ATOMIC_LOAD_ACQUIRE(&caches); cache; cache = cache->next) {
        struct hakmem_scope *none = NULL;
        if (!ATOMIC_LOAD_RELAXED(&cache->scope) &&
            __atomic_compare_exchange_n(
                &cache->scope, &none, scope, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return cache;
    }
    struct scope_cache *cache = metadata_alloc(sizeof *cache);
    if (!cache)
        return NULL;
    cache->scope = scope;
    cache->next = ATOMIC_LOAD_RELAXED(&caches);
    while (!__atomic_compare_exchange_n(
        &caches, &cache->next, cache, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        continue;
    return cache;
}

SLOW_PATH void cache_end(struct scope_cache *cache)
{
    ATOMIC_STORE_RELEASE(&cache->scope, NULL);
}

SLOW_PATH void cache_shut(const struct hakmem_scope *scope, enum cache_state state)
{
    FOR_CACHES(cache, scope)
    ATOMIC_STORE_RELAXED(&cache->state, state);
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
    FOR_CACHES(cache, scope)
    {
        /* Read only now: the block may have no page. */
        if (!is_mark(block))
            return false;
        for (unsigned i = ATOMIC_LOAD_RELAXED(&cache->count[size_class]); i-- > 0;)
            if (ATOMIC_LOAD_RELAXED(&cache->blocks[size_class][i]) == block)
                return true;
    }
    return false;
}

/* ---- Hits ------------------------------------------------------------------------------------ */

static bool is_open(const struct scope_cache *cache)
{
    return ATOMIC_LOAD_RELAXED(&cache->state) == CACHE_OPEN && LIKELY(!perturb_is_on());
}

void *scope_pop(unsigned size_class)
{
    struct scope_cache *cache = scope_entered->cache;
    if (!cache || size_class >= LONG_CLASS_FIRST)
        return NULL;
    unsigned count = cache->count[size_class];
    if (UNLIKELY(!count || !is_open(cache)))
        return NULL;
    void *block = cache->blocks[size_class][count - 1];
    ATOMIC_STORE_RELAXED(&cache->count[size_class], (uint8_t)(count - 1));
    unpoison(block, size_classes[size_class].size);
    *(mark *)block = 0;
    return block;
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
    if (!cache || !span || span->region.kind != REGION_SCOPE ||
        span->scope != ATOMIC_LOAD_RELAXED(&cache->scope))
        return false;
    /* Who ends the blocks meanwhile shuts the cache first, and then the records of slabs: what is
     * read of one that serves again goes nowhere. */
    const struct slab *slab = ATOMIC_LOAD_RELAXED(&span->slab_of_unit[superslab_unit_of(block)]);
    unsigned size_class = slab ? ATOMIC_LOAD_RELAXED(&slab->size_class) : LONG_CLASS_FIRST;
    if (UNLIKELY(size_class >= LONG_CLASS_FIRST || !is_open(cache)))
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
