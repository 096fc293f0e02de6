/* See everything.h. */
#include "reclaim/everything.h"

#include "hardened.h"
#include "os/os.h"
#include "slab/shard.h"
#include "slab/sweep.h"
#include "span/big_cache.h"
#include "span/page_heap.h"
#include "thread/idle.h"
#include "thread/registry.h"
#include "trace/trace.h"

size_t reclaim_everything(void)
{
    /* From the top down: each layer gives to the one below. */
    idle_purge();
    heap_flush_pooled(0);
    transfer_drain(SIZE_MAX);
    trace_give_back();
    size_t purged = sweep_purge(SIZE_MAX);
    purged += page_heap_purge(SIZE_MAX) + big_cache_empty();
    pressure_account(purged);
    if (HARDENED)
        hardened_unmap_refused();
    os_discard_leftovers();
    return purged;
}

bool reclaim_may_make_room(size_t bytes)
{
    size_t mapped = page_heap_stats().superslabs * REGION_SIZE + big_cache_mapped();
    if (bytes <= mapped)
        return true;
    size_t rest = round_up(bytes - mapped, os_page_size());
    void *probe = os_map(rest, os_page_size(), NULL);
    if (probe)
        os_discard(probe, rest);
    return probe != NULL;
}

bool reclaim_for(struct heap *heap, size_t bytes)
{
    if (!reclaim_may_make_room(bytes))
        return false;
    if (HARDENED)
        hardened_release();
    heap_flush(heap);
    reclaim_everything();
    return true;
}
