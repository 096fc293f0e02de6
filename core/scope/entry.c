/* What threads have entered: see hakmem.h and scope.h.
 *
 * A thread that is in a scope keeps its heap parked (thread/idle.c), so that each of its calls of
 * malloc is a miss, and asks scope_is_entered there.
 */
#include <errno.h>

#include "api/alloc.h"
#include "map/metadata.h"
#include "os/cancel.h"
#include "os/fatal.h"
#include "scope/cache.h"
#include "thread/heap.h"

__thread struct scope_entry *scope_entered;

/* Makes that the last entry, and parks the heap if allocations come from a scope now. */
static void set_entered(struct scope_entry *entry)
{
    scope_entered = entry;
    struct heap *heap = scope_is_entered() ? heap_enter() : NULL;
    if (heap)
        heap_leave(heap);
}

/* Ends the cache of the last entry, if it has one. With cancellation put off. */
static void end_cache(void)
{
    struct scope_cache *cache = scope_entered->cache;
    scope_entered->cache = NULL;
    ATOMIC_STORE_RELAXED(&scope_entered->open, NULL);
    scope_entered->calls = 0;
    if (!cache)
        return;
    cache_empty(cache);
    metadata_free(cache, sizeof *cache);
}

int scope_enter(struct hakmem_scope *scope)
{
    if (scope && !scope_lives(scope))
        scope_end_used(scope, "hakmem_scope_enter");
    int type = cancel_put_off();
    struct scope_entry *entry = metadata_alloc(sizeof *entry);
    if (entry) {
        *entry = (struct scope_entry){.scope = scope, .below = scope_entered};
        set_entered(entry);
    }
    cancel_restore(type);
    return entry ? 0 : ENOMEM;
}

static void leave_last(void)
{
    struct scope_entry *entry = scope_entered;
    int type = cancel_put_off();
    end_cache();
    set_entered(entry->below);
    metadata_free(entry, sizeof *entry);
    cancel_restore(type);
}

void scope_leave(struct hakmem_scope *scope)
{
    const struct scope_entry *entry = scope_entered;
    if (!entry || entry->scope != scope || entry->asked)
        fatal_scope("hakmem_scope_leave", "wrong order of", scope, ": ", scope ? scope->name : "");
    leave_last();
}

/* From a destructor of the thread: no call of scope_take or a callback is under way. */
void scope_thread_ends(void)
{
    while (scope_entered)
        leave_last();
}

void *scope_take(struct hakmem_scope *scope, void *block, size_t size, size_t alignment)
{
    int type = cancel_put_off();
    struct scope_entry entry = {.scope = scope, .below = scope_entered};
    scope_entered = &entry;
    if (block) {
        set_entered(&entry);
        block = alloc_resize_aligned(block, size, alignment);
    } else {
        block = alloc_any(size, alignment, size_class_aligned(size, alignment), false);
    }
    scope_entered = entry.below;
    /* Outside of scopes the heap was left open. */
    if (!scope)
        set_entered(entry.below);
    cancel_restore(type);
    return block;
}

int scope_change(struct hakmem_scope *scope)
{
    if (!scope_entered)
        return scope ? scope_enter(scope) : 0;
    int type = cancel_put_off();
    end_cache();
    scope_entered->scope = scope;
    set_entered(scope_entered);
    cancel_restore(type);
    return 0;
}

unsigned scope_arena_entered(void)
{
    return scope_is_entered() ? scope_entered->scope->arena : 0;
}

bool scope_ask(struct hakmem_scope *full, size_t bytes)
{
    bool can = full->callback;
    for (const struct scope_entry *entry = scope_entered; entry; entry = entry->below)
        can &= entry->asked != full;
    if (!can)
        return false;
    struct scope_entry entry = {.below = scope_entered, .asked = full};
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    scope_entered = &entry;
    bool again = full->callback(full, bytes, full->argument) != 0;
    set_entered(entry.below);
    pthread_setcancelstate(state, NULL);
    return again;
}
