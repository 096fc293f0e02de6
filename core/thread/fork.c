/* See fork.h.
 *
 * Before fork, the forking thread waits for an initialisation and takes every lock, so that no
 * other thread is in the middle of a change when the child's copy is made. Since no thread ever
 * waits for one lock while it holds another, the order is free and taking them always ends.
 *
 * What the copy may catch half done are the magazines of other threads, which no lock guards.
 * The child does not look at them: those heaps restart empty.
 *
 * A signal handler may fork while the thread it interrupted holds a lock: that one lock stays held
 * until the interrupted code goes on, in both processes.
 */
#include "thread/fork.h"

#include <pthread.h>

#include "map/metadata.h"
#include "slab/bin.h"
#include "slab/depot.h"
#include "span/big.h"
#include "span/page_heap.h"
#include "thread/heap.h"

static void for_each_lock(void (*action)(struct lock *))
{
    action(heap_registry_lock());
    for (unsigned shard = 0; shard < shard_count(); shard++)
        for (unsigned class = 1; class < CLASS_COUNT; class ++)
            action(&bin_of(shard, class)->lock);
    for (unsigned class = 1; class < CLASS_COUNT; class ++)
        action(depot_lock(class));
    action(big_lock());
    action(page_heap_lock());
    action(metadata_lock());
}

static void before_fork(void)
{
    heap_prepare_fork();
    for_each_lock(lock_prepare_fork);
}

static void in_parent(void)
{
    for_each_lock(lock_finish_fork);
}

/* Until all locks are open the child goes by its parent's thread id, which holds them. */
static uint32_t id_before_fork;

static void adopt_lock(struct lock *lock)
{
    lock_adopt_in_child(lock, id_before_fork);
}

static void in_child(void)
{
    id_before_fork = lock_self();
    uint32_t id = lock_identify();
    heap_adopt_in_child(id_before_fork, id);
    for_each_lock(adopt_lock);
}

void fork_init(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}
