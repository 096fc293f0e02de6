/* The hit paths of long blocks, and the way to the slow ones: see alloc.h. Compiled for speed, as
 * those in override/. */
#include "api/alloc.h"
#include "scope/scope.h"

HOT_ENTRY void *alloc_long(size_t size, struct heap_front *heap)
{
    return alloc_long_or(size, heap, alloc_slow);
}

HOT_ENTRY void free_long(void *block, struct heap_front *heap)
{
    if (UNLIKELY(!magazine_push_long(heap, block)))
        free_slow(block);
}

void *alloc_slow(size_t size)
{
    const struct scope_entry *entry = SCOPES ? scope_entered : NULL;
    if (SCOPES && LIKELY(entry != NULL))
        return scope_malloc(size, entry);
    unsigned size_class = size <= LARGE_MAX ? size_class_of(size) : CLASS_NONE;
    return alloc_any(size, MIN_ALIGNMENT, size_class, false);
}

/* Looks at the magazine again: a signal handler may have filled it. */
void free_marked(void *block, struct heap_front *heap)
{
    unsigned size_class = class_at(heap, block);
    if (size_class == CLASS_NONE || heap_suspects(heap_of_thread(), size_class, block, true) ||
        magazine_is_full(heap, size_class))
        free_slow(block);
    else
        magazine_put(heap, size_class, block, false);
}

void free_far(void *block, struct heap_front *heap)
{
    /* A closed heap, or the static one, may not be written to. */
    if (UNLIKELY(LOAD_HOT(&heap->classes_limit) != 0))
        free_long(block, heap);
    else if (SCOPES && LIKELY(scope_entered != NULL))
        scope_release(block, scope_entered);
    else
        free_slow(block);
}
