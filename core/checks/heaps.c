/* See checks.h. */
#include "base/assert.h"
#include "checks/checks.h"
#include "os/identity.h"
#include "slab/slab.h"
#include "thread/registry.h"

/* ---- Magazines ------------------------------------------------------------------------------- */

/* 0: the magazine was never used since the area was all zero. */
static unsigned slot_of_top(const struct heap *heap, unsigned size_class)
{
    void *const *top = ATOMIC_LOAD_RELAXED(&heap->area->front.top[size_class]);
    return top ? (unsigned)(top - (void *const *)heap->area) : 0;
}

static void check_magazine(const struct heap *heap, unsigned size_class)
{
    const struct magazine *magazine = magazine_of(heap, size_class);
    void *const *slots = (void *const *)heap->area;
    unsigned top = slot_of_top(heap, size_class), begin = magazine->begin;
    unsigned end = magazine->range + magazine->capacity + 1u;
    ASSERT(magazine->kind < RANGE_KINDS);
    ASSERT(magazine->capacity < (RANGE_BLOCKS_MIN + 1) << magazine->kind);
    ASSERT(magazine->range <= begin && begin <= top && top < end);
    ASSERT(slots[begin] == NULL && slots[end] == NULL);
    for (unsigned slot = top + 1; slot < end; slot++)
        ASSERT(slots[slot] != NULL);
    for (unsigned slot = begin + 1; slot <= top; slot++) {
        /* The class map has class 0 for slabs beyond its window. */
        const struct slab *slab = slab_lookup(slots[slot]);
        ASSERT(slab && slab->size_class == size_class);
        ASSERT(
            !size_class_is_long(size_class) ||
            superslab_live_class(superslab_state_of(slots[slot]), slots[slot]) != size_class);
    }
}

/* False for a heap of the parent process that nobody has entered or taken over yet: any change of
 * its magazines may have stopped in the middle. Nor is a heap that a thread has claimed looked at.
 */
static bool can_be_checked(const struct heap *heap)
{
    uint64_t owner = ATOMIC_LOAD_RELAXED(&heap->owner);
    return !owner || identity_is_local(owner);
}

void heap_check(struct heap *heap)
{
    if (heap->bare || !can_be_checked(heap))
        return;
    const struct heap_front *front = &heap->area->front;
    ASSERT(front->null_slots[0] == NULL && front->null_slots[1] == NULL);
    ASSERT(!slot_of_top(heap, CLASS_NONE));
    ASSERT(heap->next_slot <= HEAP_SLOTS);
    for (unsigned size_class = 1; size_class < CLASS_COUNT; size_class++)
        if (slot_of_top(heap, size_class))
            check_magazine(heap, size_class);
}

/* ---- The pool -------------------------------------------------------------------------------- */

void heap_check_pool(void)
{
    unsigned warm = 0, empty = 0;
    lock_acquire(&registry.lock);
    for (unsigned shard = 0; shard < SHARD_MAX; shard++) {
        const struct pool *pool = &registry.pools[shard];
        for (struct heap *heap = pool->warm; heap; heap = heap->next_free, warm++)
            ASSERT(!heap->owner && heap->shard == shard);
        for (struct heap *heap = pool->empty; heap; heap = heap->next_free, empty++)
            ASSERT(!heap->owner && heap->shard == shard && !heap->bare);
        for (struct heap *heap = pool->bare; heap; heap = heap->next_free)
            ASSERT(!heap->owner && heap->shard == shard && heap->bare);
    }
    ASSERT(warm == registry.warm_count && empty == registry.empty_count);
    lock_release(&registry.lock);
}
