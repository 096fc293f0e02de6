/* See checks.h. */
#include "base/assert.h"
#include "checks/checks.h"
#include "scope/cache.h"
#include "scope/span.h"

/* What the walker has found in one scope. */
static struct {
    size_t bytes, blocks;
} held;

static void check_scoped_slab(const struct span *span, unsigned unit)
{
    const struct slab *slab = span->slab_of_unit[unit];
    ASSERT((slab == NULL) == (span->free_units >> unit & 1));
    bool cached = slab && cache_serves(slab->size_class) && !slab_is_sampled(slab);
    ASSERT(span->class_of_unit[unit] == (cached ? slab->size_class : CLASS_NONE));
    (void)cached; /* only asserted on */
    if (!slab || superslab_unit_of(slab->base) != unit)
        return;
    ASSERT(slab->free_blocks == bitmap_count_range(slab->free, 0, slab->blocks));
    ASSERT(slab->watermark <= slab->blocks);
    ASSERT(bitmap_find(slab->free, slab->watermark, slab->blocks, false) == slab->blocks);
    for (unsigned i = 1; i < span_units_of(slab); i++)
        ASSERT(span->slab_of_unit[unit + i] == slab);
    unsigned live = slab->blocks - slab->free_blocks;
    held.blocks += live;
    held.bytes += live * span_block_bytes(slab);
}

/* Returns how many spans for slabs are on the list. */
static unsigned check_spans(const struct hakmem_scope *scope, const struct list *list, bool full)
{
    unsigned count = 0;
    for (struct list_node *node = list->first; node; node = node->next) {
        const struct span *span = span_by_node(node);
        ASSERT(*node->link == node && span->scope == scope && span->listed);
        ASSERT(page_map_lookup(span->region.base) == &span->region);
        ASSERT(full == !span->free_units && !(span->clean_units & ~span->free_units));
        count += !span_is_block(span);
        for (unsigned unit = 0; unit < SPAN_UNITS; unit++)
            check_scoped_slab(span, unit);
    }
    (void)scope, (void)full; /* only asserted on */
    return count;
}

static void check_slab_list(const struct list *list, unsigned size_class, bool sampled)
{
    for (struct list_node *node = list->first; node; node = node->next) {
        const struct slab *slab = CONTAINER_OF(node, struct slab, by_fullness);
        ASSERT(*node->link == node && slab->size_class == size_class && slab->free_blocks);
        ASSERT(slab_is_sampled(slab) == sampled);
        (void)slab, (void)size_class, (void)sampled; /* only asserted on */
    }
}

static void check_slab_lists(const struct hakmem_scope *scope)
{
    for (unsigned size_class = 1; size_class <= SIZE_COUNT; size_class++) {
        check_slab_list(&scope->slabs[false][size_class], size_class, false);
        check_slab_list(&scope->slabs[true][size_class], size_class, true);
    }
}

void scope_check_all(void)
{
    for (const struct hakmem_scope *scope = scope_first(); scope; scope = scope->next) {
        held.bytes = held.blocks = 0;
        unsigned spans = check_spans(scope, &scope->open, false);
        spans += check_spans(scope, &scope->full, true);
        check_slab_lists(scope);
        ASSERT(spans == scope->spans);
        ASSERT(scope_lives(scope) || (!scope->live_blocks && !scope->full.first));
        for (const struct hakmem_scope *inner = scope_first(); inner; inner = inner->next)
            if (scope_lives(inner) && inner->parent == scope) {
                held.bytes += inner->live_bytes;
                held.blocks += inner->live_blocks;
            }
        ASSERT(held.bytes == scope->live_bytes && held.blocks == scope->live_blocks);
        (void)spans; /* only asserted on */
    }
}
