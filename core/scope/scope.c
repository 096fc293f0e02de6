/* Whole scopes: see hakmem.h. They are ended, looked at, and repaired in children of fork. */
#include "scope/scope.h"

#include <string.h>

#include "base/poison.h"
#include "base/text.h"
#include "os/cancel.h"
#include "os/os.h"
#include "scope/cache.h"
#include "scope/span.h"
#include "trace/trace.h"

/* ---- Ends ------------------------------------------------------------------------------------ */

/* Takes what the scope itself holds. The lock. */
static void detach(struct hakmem_scope *scope, struct list *gone)
{
    struct list_node *node;
    while ((node = scope->full.first ? scope->full.first : scope->open.first) != NULL) {
        span_unlist(span_by_node(node));
        list_push(gone, node);
    }
    memset(scope->slabs, 0, sizeof scope->slabs);
    scope->was_reset = true;
    scope->live_bytes = scope->live_blocks = 0;
}

/* The same of the scopes inside it, too. If `ended` is not NULL, they end, and are pushed there. */
static void detach_all(struct hakmem_scope *scope, struct list *gone, struct list *ended)
{
    bool alone = !scope->inside;
    cache_shut(scope, CACHE_GONE);
    scope_count(scope->parent, -scope->live_bytes, -scope->live_blocks);
    if (ended && scope->parent)
        scope->parent->inside--;
    struct hakmem_scope *other = alone ? scope : scope_first();
    for (; other; other = alone ? NULL : other->next) {
        if (!scope_lives(other) || !scope_is_inside(other, scope))
            continue;
        detach(other, gone);
        if (!ended)
            continue;
        ATOMIC_STORE_RELAXED(&other->lives, false);
        list_push(ended, &other->by_end);
    }
}

static void end_samples(struct slab *slab)
{
    for (unsigned i = 0; i < slab->blocks && UNLIKELY(slab_is_sampled(slab)); i++)
        if (*slab_sample(slab, i))
            trace_now()->died(*slab_sample(slab, i));
}

/* Leaves the beginning of a big block, as long as a span. */
static bool keep_beginning(struct span *span)
{
    size_t rest = span->bytes - REGION_SIZE;
    if (rest && !os_unmap(span->region.base + REGION_SIZE, rest))
        return false;
    span->bytes = REGION_SIZE;
    return true;
}

/* Takes the memory of a detached span without blocks. Where addresses are not limited, a scope that
 * stays keeps its own but those of big blocks, and one that has ended those of a few spans, closed.
 * False: it has to be unmapped. */
static bool empty_span(struct span *span, unsigned *closed)
{
    if (os_address_space_limit() != SIZE_MAX)
        return false;
    if (scope_lives(span->scope))
        return !span_is_block(span) && os_purge(span->region.base, REGION_SIZE);
    return (*closed)++ < SCOPE_SPANS_KEPT && keep_beginning(span) &&
           os_make_untouchable(span->region.base, REGION_SIZE);
}

/* Ends the slabs of a detached span, and makes it as new, but for its mapping. False: it has to be
 * unmapped. */
static bool renew(struct span *span, unsigned *closed)
{
    for (unsigned unit = 0; unit < SPAN_UNITS; unit++) {
        struct slab *slab = span->slab_of_unit[unit];
        if (slab && (unit == SPAN_UNITS - 1 || span->slab_of_unit[unit + 1] != slab))
            end_samples(slab), span_free_record(slab);
        ATOMIC_STORE_RELAXED(&span->slab_of_unit[unit], NULL);
        ATOMIC_STORE_RELAXED(&span->class_of_unit[unit], CLASS_NONE);
    }
    if (!empty_span(span, closed))
        return false;
    poison(span->region.base, REGION_SIZE);
    span->free_units = span->clean_units = UINT32_MAX;
    return true;
}

/* Gives back what was detached. Spans with huge pages serve last. */
static void give_back(struct hakmem_scope *scope, struct list *gone)
{
    struct list kept[2] = {{NULL}, {NULL}};
    unsigned closed = 0;
    struct list_node *node;
    while ((node = gone->first) != NULL) {
        struct span *span = span_by_node(node);
        list_remove(node);
        if (renew(span, &closed))
            list_push(&kept[span->huge], node);
        else
            span_unmap(span);
    }
    lock_acquire(&scope->root->lock);
    while ((node = kept[true].first ? kept[true].first : kept[false].first) != NULL) {
        list_remove(node);
        span_list(span_by_node(node));
    }
    lock_release(&scope->root->lock);
}

void scope_reset(struct hakmem_scope *scope)
{
    struct list gone = {NULL};
    int type = cancel_put_off();
    scope_lock(scope, "hakmem_scope_reset");
    detach_all(scope, &gone, NULL);
    scope_unlock(scope);
    give_back(scope, &gone);
    cancel_restore(type);
}

void scope_destroy(struct hakmem_scope *scope)
{
    struct list gone = {NULL}, ended = {NULL};
    int type = cancel_put_off();
    scope_lock(scope, "hakmem_scope_destroy");
    detach_all(scope, &gone, &ended);
    scope_unlock(scope);
    give_back(scope, &gone);
    while (ended.first) {
        struct list_node *node = ended.first;
        list_remove(node);
        scope_retire(CONTAINER_OF(node, struct hakmem_scope, by_end));
    }
    cancel_restore(type);
}

/* ---- Figures --------------------------------------------------------------------------------- */

bool scope_look(struct hakmem_scope *scope, struct hakmem_scope_figures *usage)
{
    int type = cancel_put_off();
    bool lives = scope_try_lock(scope);
    if (lives) {
        usage->live_blocks = scope->live_blocks;
        usage->live_bytes = scope->live_bytes;
        cache_take_off(scope, usage);
        usage->limit_bytes = scope->limit == SIZE_MAX ? 0 : scope->limit;
        scope_unlock(scope);
    }
    cancel_restore(type);
    return lives;
}

/* The system is asked without a lock: spans may come and go. */
size_t scope_resident(const struct hakmem_scope *scope)
{
    size_t bytes = 0;
    for (struct region *region = NULL; (region = page_map_next(region)) != NULL;) {
        const struct span *span = (struct span *)region;
        if (region->kind == REGION_SCOPE && scope_lives(span->scope) &&
            (!scope || scope_is_inside(span->scope, scope)))
            bytes += os_resident_bytes(region->base, span->bytes);
    }
    return bytes;
}

void scope_usage(struct hakmem_scope *scope, struct hakmem_scope_figures *usage)
{
    if (!scope_look(scope, usage))
        scope_end_used(scope, "hakmem_scope_usage");
    usage->resident_bytes = scope_resident(scope);
}

size_t scope_live_of_all(void)
{
    size_t bytes = 0;
    struct hakmem_scope_figures usage;
    for (struct hakmem_scope *scope = scope_first(); scope; scope = scope->next)
        if (!scope->parent && scope_look(scope, &usage))
            bytes += usage.live_bytes;
    return bytes;
}

void scope_describe(struct text *text, const void *address)
{
    const struct hakmem_scope *scope = span_of(address)->scope;
    text_string(text, scope_lives(scope) ? "in scope '" : "in the ended scope '");
    text_string(text, scope->name);
    text_char(text, '\'');
}

void scope_shut_caches(void)
{
    int type = cancel_put_off();
    for (struct hakmem_scope *scope = scope_first(); scope; scope = scope->next)
        if (scope_try_lock(scope)) {
            cache_shut(scope, CACHE_SHUT);
            scope_unlock(scope);
        }
    cancel_restore(type);
}

/* ---- Fork ------------------------------------------------------------------------------------ */

bool scope_holds_lock(void)
{
    bool mine = lock_is_mine(&scope_records_lock);
    for (const struct hakmem_scope *scope = scope_first(); scope; scope = scope->next)
        mine |= lock_is_mine(&scope->lock);
    return mine;
}

/* The places of slabs and their bitmaps are right whenever a process forks; all else follows.
 * Blocks that the lost thread was about to hand out, or had just got back, stay live. */
static void repair_slabs(struct span *span)
{
    span->free_units = UINT32_MAX;
    for (unsigned unit = 0; unit < SPAN_UNITS; unit++) {
        struct slab *slab = span->slab_of_unit[unit];
        if (!slab || superslab_unit_of(slab->base) != unit)
            continue;
        slab_repair(slab);
        span_own_units(span, unit, slab);
        if (slab->free_blocks)
            list_push(span_slabs(span->scope, slab), &slab->by_fullness);
        size_t live = slab->blocks - slab->free_blocks;
        scope_count(span->scope, live * span_block_bytes(slab), live);
    }
}

/* From node to next node the list is right at any moment. */
static void repair_caches(struct hakmem_scope *root)
{
    struct list_node *node = root->caches.first;
    root->caches.first = NULL;
    while (node) {
        struct list_node *next = node->next;
        if (CONTAINER_OF(node, struct scope_cache, by_tree)->state != CACHE_GONE)
            list_push(&root->caches, node);
        node = next;
    }
}

static void repair_tree(struct hakmem_scope *root)
{
    struct list none = {NULL};
    repair_caches(root);
    for (struct hakmem_scope *scope = scope_first(); scope; scope = scope->next)
        if (scope->root == root) {
            scope->open = scope->full = none;
            memset(scope->slabs, 0, sizeof scope->slabs);
            scope->live_bytes = scope->live_blocks = scope->spans = scope->empty = 0;
        }
    for (struct region *region = NULL; (region = page_map_next(region)) != NULL;) {
        struct span *span = (struct span *)region;
        if (region->kind != REGION_SCOPE || span->scope->root != root || !span->listed)
            continue;
        repair_slabs(span);
        span_list(span);
    }
}

void scope_begin_process(uint32_t before, uint32_t now)
{
    if (lock_is_lost(&scope_records_lock, before))
        scope_repair_records();
    lock_inherit(&scope_records_lock, before, now);
    for (struct hakmem_scope *scope = scope_first(); scope; scope = scope->next) {
        if (lock_is_lost(&scope->lock, before))
            repair_tree(scope);
        lock_inherit(&scope->lock, before, now);
    }
}
