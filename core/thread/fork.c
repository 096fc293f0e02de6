/* See fork.h.
 *
 * Nothing is locked before fork. The forking thread may hold other locks under which other threads
 * allocate: those of stdio, of the list of fork handlers, of a library with handlers of its own. If
 * it took a lock of ours as well, that would sooner or later complete a deadlock; and a child made
 * by _Fork or a bare clone would not have waited for it.
 *
 * Instead the child repairs its structures. Its memory is that of the parent at one moment: it has
 * all writes of each thread before, and none after. So a structure whose lock is open is sound. One
 * whose lock is held was in the middle of a change by a thread that does not exist here: its lists,
 * sums and bounds are made anew from the bitmaps of slabs and superslabs and the page map, which no
 * change leaves wrong. Blocks that such a thread was moving, at most a batch or a mapping, stay
 * allocated.
 *
 * No lock guards the magazines of other threads, and the child does not look at them. Nor does one
 * guard the hand of the engine (reclaim/engine.c): that is written so that the child can go on with
 * it from wherever it was.
 *
 * The repair runs when a thread of the child first asks for its identity, as it does before it
 * takes a lock (os/identity.h): a child that only calls exec pays nothing, and no handler has to
 * have run.
 *
 * A signal handler may fork while the thread it interrupted holds a lock: that one lock stays held
 * until the interrupted code goes on, in both processes.
 */
#include "thread/fork.h"

#include <pthread.h>

#include "base/pressure.h"
#include "hardened.h"
#include "map/metadata.h"
#include "os/identity.h"
#include "os/thread.h"
#include "scope/scope.h"
#include "slab/shard.h"
#include "span/big_part.h"
#include "span/page_heap.h"
#include "thread/registry.h"

/* Ids of the calling thread in the parent and here. */
static struct {
    uint32_t before, now;
} own_ids;

/* A lost lock stays held until its structure is sound: this process may fork in the middle, too. */
static void inherit(struct lock *lock, void (*repair)(void))
{
    if (lock_is_lost(lock, own_ids.before))
        repair();
    lock_inherit(lock, own_ids.before, own_ids.now);
}

static void inherit_part(struct lock *lock, void (*repair)(unsigned part), unsigned part)
{
    if (lock_is_lost(lock, own_ids.before))
        repair(part);
    lock_inherit(lock, own_ids.before, own_ids.now);
}

static void repair_child(uint32_t before, uint32_t now)
{
    hardened_begin_process();
    own_ids.before = before;
    own_ids.now = now;
    pressure_begin_process();
    os_thread_begin_process();
    heap_begin_process(before, now);
    inherit(&registry.lock, heap_repair_registry);
    for (unsigned part = 0; part < big_cache_parts(); part++)
        inherit_part(&big_parts[part].lock, big_cache_repair, part);
    for (unsigned part = 0; part < page_heap_parts(); part++)
        inherit_part(&page_heap_part[part].lock, page_heap_repair, part);
    inherit(&metadata.lock, metadata_repair);
    for (unsigned bin = 0; bin < shard_places(); bin++)
        inherit_part(&bin_at(bin)->lock, bin_repair, bin);
    if (SCOPES)
        scope_begin_process(before, now);
}

bool fork_holds_lock(void)
{
    bool mine = lock_is_mine(&registry.lock) || lock_is_mine(&metadata.lock);
    if (SCOPES)
        mine |= scope_holds_lock();
    for (unsigned part = 0; part < big_cache_parts(); part++)
        mine |= lock_is_mine(&big_parts[part].lock);
    for (unsigned part = 0; part < page_heap_parts(); part++)
        mine |= lock_is_mine(&page_heap_part[part].lock);
    for (unsigned bin = 0; bin < shard_places(); bin++)
        mine |= lock_is_mine(&bin_at(bin)->lock);
    return mine;
}

void fork_start(void)
{
    identity_start(repair_child);
}

static void before_fork(void)
{
    heap_prepare_fork();
    identity_before_fork();
}

void fork_init(void)
{
    pthread_atfork(before_fork, NULL, identity_in_child);
}
