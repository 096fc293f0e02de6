/* See locks.h. */
#include "observe/locks.h"

#include <string.h>

#include "base/atomic.h"
#include "map/metadata.h"
#include "os/lock.h"
#include "slab/shard.h"
#include "span/big.h"
#include "span/page_heap.h"
#include "thread/heap.h"

const struct lock_kind_name lock_kind_names[LOCK_KINDS] = {
    [LOCK_BIN] = {"bin", "shard"},
    [LOCK_TRANSFER] = {"transfer", "shard"},
    [LOCK_PAGE_HEAP] = {"page_heap", "process"},
    [LOCK_BIG] = {"big", "process"},
    [LOCK_METADATA] = {"metadata", "process"},
    [LOCK_REGISTRY] = {"registry", "process"},
};

static void read_profile(const struct lock_profile *profile, struct lock_usage *usage)
{
    usage->acquisitions = ATOMIC_LOAD_RELAXED(&profile->acquisitions);
    usage->waits = ATOMIC_LOAD_RELAXED(&profile->waits);
    usage->handovers = ATOMIC_LOAD_RELAXED(&profile->handovers);
    usage->interrupted = ATOMIC_LOAD_RELAXED(&profile->interrupted);
    usage->waited_ns = lock_profile_ns(ATOMIC_LOAD_RELAXED(&profile->waited_ticks));
    usage->held_ns = lock_profile_ns(ATOMIC_LOAD_RELAXED(&profile->held_ticks));
}

static void add_lock(struct lock_kind_usage *kind, const struct lock *lock)
{
    struct lock_usage usage;
    read_profile(lock->profile, &usage);
    if (!usage.acquisitions)
        return;
    kind->locks++;
    kind->all.acquisitions += usage.acquisitions;
    kind->all.waits += usage.waits;
    kind->all.handovers += usage.handovers;
    kind->all.interrupted += usage.interrupted;
    kind->all.waited_ns += usage.waited_ns;
    kind->all.held_ns += usage.held_ns;
    if (kind->busy.held_ns <= usage.held_ns)
        kind->busy = usage;
    if (kind->met.handovers <= usage.handovers)
        kind->met = usage;
}

void locks_collect(enum lock_kind kind, struct lock_kind_usage *usage)
{
    struct lock *(*const single[LOCK_KINDS])(void) = {
        [LOCK_PAGE_HEAP] = page_heap_lock,
        [LOCK_BIG] = big_lock,
        [LOCK_METADATA] = metadata_lock,
        [LOCK_REGISTRY] = heap_registry_lock,
    };
    memset(usage, 0, sizeof *usage);
    if (single[kind]) {
        add_lock(usage, single[kind]());
        return;
    }
    for (unsigned shard = 0; shard < shard_count(); shard++)
        for (unsigned size_class = 1; size_class < CLASS_COUNT; size_class++)
            add_lock(
                usage, kind == LOCK_BIN ? &bin_of(shard, size_class)->lock
                                        : &transfer_of(shard, size_class)->lock);
}
