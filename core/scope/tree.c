/* See tree.h. */
#include "scope/tree.h"

#include <string.h>

#include "base/text.h"
#include "base/tuning.h"
#include "map/metadata.h"
#include "os/cancel.h"
#include "os/fatal.h"
#include "scope/cache.h"
#include "scope/span.h"
#include "thread/heap.h"

struct lock scope_records_lock;

static struct hakmem_scope *records; /* atomic: release on store pairs with acquire on load */
static struct queue ended_records;   /* lock of the records: the next to serve again first */
static unsigned ended_count;         /* the same */

struct hakmem_scope *scope_first(void)
{
    return ATOMIC_LOAD_ACQUIRE(&records);
}

unsigned scope_arenas(void)
{
    return scope_first() ? scope_first()->arena : 0;
}

unsigned scope_arena(const struct hakmem_scope *scope)
{
    return scope->arena;
}

struct hakmem_scope *scope_of_arena(size_t arena)
{
    struct hakmem_scope *scope = scope_first();
    while (scope && scope->arena != arena)
        scope = scope->next;
    return scope && scope_lives(scope) ? scope : NULL;
}

/* ---- Records --------------------------------------------------------------------------------- */

static struct hakmem_scope *reuse_scope(void)
{
    struct hakmem_scope *scope = NULL;
    lock_acquire(&scope_records_lock);
    if (ended_count > SCOPE_RECORDS_KEPT) {
        scope = CONTAINER_OF(ended_records.first, struct hakmem_scope, by_end);
        queue_remove(&ended_records, &scope->by_end);
        ended_count--;
    }
    lock_release(&scope_records_lock);
    struct list_node *node;
    while (scope && (node = scope->open.first) != NULL) {
        span_unlist(span_by_node(node));
        span_unmap(span_by_node(node));
    }
    return scope;
}

static struct hakmem_scope *make_scope(void)
{
    struct hakmem_scope *scope = metadata_alloc(sizeof *scope);
    if (!scope)
        return NULL;
    scope->next = scope_first();
    do
        scope->arena = scope->next ? scope->next->arena + 1 : 1;
    while (!__atomic_compare_exchange_n(
        &records, &scope->next, scope, true, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE));
    return scope;
}

/* Makes the record a live scope. */
static void start_scope(struct hakmem_scope *scope)
{
    struct hakmem_scope *parent = scope->parent;
    if (parent)
        scope_lock(parent, "hakmem_scope_create");
    ATOMIC_STORE_RELEASE(&scope->lives, true);
    if (!parent)
        return;
    parent->inside++;
    scope_unlock(parent);
}

struct hakmem_scope *scope_create(
    const char *name, size_t limit, hakmem_scope_callback *callback, void *argument)
{
    struct heap *heap = heap_enter(); /* the first call of all initialises the allocator */
    if (!heap)
        return NULL;
    struct text text;
    struct hakmem_scope *scope = reuse_scope();
    if (!scope)
        scope = make_scope();
    if (scope) {
        text_init(&text, scope->name, sizeof scope->name);
        if (name) {
            text_foreign(&text, name, strlen(name));
        } else {
            text_string(&text, "arena ");
            text_unsigned(&text, scope->arena);
        }
        text_terminate(&text);
        scope->callback = callback;
        scope->argument = argument;
        scope->limit = limit ? limit : SIZE_MAX;
        scope->was_reset = false;
        scope->inside = 0;
        scope->parent = name && scope_is_entered() ? scope_entered->scope : NULL;
        scope->root = scope->parent ? scope->parent->root : scope;
        start_scope(scope);
    }
    heap_leave(heap);
    return scope;
}

void scope_retire(struct hakmem_scope *scope)
{
    lock_acquire(&scope_records_lock);
    queue_push(&ended_records, &scope->by_end);
    ended_count++;
    lock_release(&scope_records_lock);
}

void scope_repair_records(void)
{
    ended_records.first = NULL;
    ended_count = 0;
}

/* ---- Figures --------------------------------------------------------------------------------- */

void scope_name(const struct hakmem_scope *scope, char name[SCOPE_PATH_BYTES])
{
    const struct hakmem_scope *line[8];
    size_t count = 0;
    struct text text;
    for (; scope && count < ARRAY_LENGTH(line); scope = scope->parent)
        line[count++] = scope;
    text_init(&text, name, SCOPE_PATH_BYTES);
    while (count-- > 0) {
        text_string(&text, line[count]->name);
        text_string(&text, count ? " / " : "");
    }
    text_terminate(&text);
}

void scope_end_used(const struct hakmem_scope *scope, const char *call)
{
    fatal_scope(call, "use after the end of", scope, ": ", scope->name);
}

bool scope_try_lock(struct hakmem_scope *scope)
{
    if (UNLIKELY(!scope_lives(scope)))
        return false;
    lock_acquire(&scope->root->lock);
    bool lives = scope_lives(scope);
    if (UNLIKELY(!lives))
        lock_release(&scope->root->lock);
    return lives;
}

void scope_lock(struct hakmem_scope *scope, const char *call)
{
    if (UNLIKELY(!scope_try_lock(scope)))
        scope_end_used(scope, call);
}

void scope_unlock(struct hakmem_scope *scope)
{
    lock_release(&scope->root->lock);
}

bool scope_is_inside(const struct hakmem_scope *scope, const struct hakmem_scope *outer)
{
    while (scope && scope != outer)
        scope = scope->parent;
    return scope;
}

static bool is_half_full(const struct hakmem_scope *scope)
{
    return scope->live_bytes > scope->limit / 2;
}

void scope_limit(struct hakmem_scope *scope, size_t limit)
{
    int type = cancel_put_off();
    scope_lock(scope, "hakmem_scope_limit");
    scope->limit = limit ? limit : SIZE_MAX;
    if (is_half_full(scope))
        cache_shut(scope, CACHE_SHUT);
    scope_unlock(scope);
    cancel_restore(type);
}

struct hakmem_scope *scope_at_limit(struct hakmem_scope *scope, size_t bytes)
{
    for (; scope; scope = scope->parent) {
        if (LIKELY(bytes <= scope->limit && scope->live_bytes <= scope->limit - bytes))
            continue;
        /* Threads that have not come by since it was half full may have caches. */
        struct hakmem_scope_figures usage = {.live_bytes = scope->live_bytes};
        cache_take_off(scope, &usage);
        if (bytes > scope->limit || usage.live_bytes > scope->limit - bytes)
            return scope;
    }
    return NULL;
}

bool scope_has_room(const struct hakmem_scope *scope, size_t bytes)
{
    while (scope && scope->live_bytes + bytes <= scope->limit / 2)
        scope = scope->parent;
    return !scope;
}

void scope_count(struct hakmem_scope *scope, size_t bytes, size_t blocks)
{
    for (; scope; scope = scope->parent) {
        bool was = is_half_full(scope);
        scope->live_bytes += bytes;
        scope->live_blocks += blocks;
        if (UNLIKELY(!was && is_half_full(scope)))
            cache_shut(scope, CACHE_SHUT);
    }
}
