/* See lock_kinds.h. A lock is its word alone: of which kind it is, its address tells. */
#include "observe/lock_kinds.h"

#include "base/atomic.h"
#include "map/metadata.h"
#include "slab/shard.h"
#include "span/big_cache.h"
#include "span/page_heap.h"
#include "thread/registry.h"

const char lock_kind_names[LOCK_KINDS][12] = {
    [LOCK_BIN] = "bin", [LOCK_TRANSFER] = "transfer", [LOCK_PAGE_HEAP] = "page_heap",
    [LOCK_BIG] = "big", [LOCK_METADATA] = "metadata", [LOCK_REGISTRY] = "registry",
};

struct lock_waits lock_kind_copies[LOCK_KIND_COPIES][LOCK_KINDS] CACHE_ALIGNED;

static bool lies_in(const void *address, const void *start, size_t size)
{
    return (uintptr_t)address - (uintptr_t)start < size;
}

static enum lock_kind kind_of(const struct lock *lock)
{
    for (unsigned i = 0; i < shard_count(); i++)
        if (lies_in(lock, shard_table[i], sizeof(struct shard)))
            return lies_in(lock, shard_table[i]->bins, sizeof shard_table[i]->bins) ? LOCK_BIN
                                                                                    : LOCK_TRANSFER;
    if (lock == metadata_lock())
        return LOCK_METADATA;
    if (lock == heap_registry_lock())
        return LOCK_REGISTRY;
    for (unsigned part = 0; part < page_heap_parts(); part++)
        if (lock == page_heap_lock(part))
            return LOCK_PAGE_HEAP;
    return LOCK_BIG;
}

static void watch(const struct lock *lock, bool waited, uint64_t ticks)
{
    struct lock_waits *waits = &lock_kind_copies[own_identity % LOCK_KIND_COPIES][kind_of(lock)];
    ATOMIC_ADD_RELAXED(&waits->acquisitions, 1);
    if (!waited)
        return;
    ATOMIC_ADD_RELAXED(&waits->waits, 1);
    ATOMIC_ADD_RELAXED(&waits->waited_ticks, ticks);
}

void lock_kinds_start(void)
{
    ATOMIC_STORE_RELEASE(&lock_watch, watch);
}

void lock_kinds_collect(enum lock_kind kind, struct lock_waits *sum)
{
    *sum = (struct lock_waits){0};
    for (unsigned i = 0; i < LOCK_KIND_COPIES; i++) {
        const struct lock_waits *waits = &lock_kind_copies[i][kind];
        sum->acquisitions += ATOMIC_LOAD_RELAXED(&waits->acquisitions);
        sum->waits += ATOMIC_LOAD_RELAXED(&waits->waits);
        sum->waited_ticks += ATOMIC_LOAD_RELAXED(&waits->waited_ticks);
    }
}
