/* Caches: free blocks of a scope at hand for a thread that stays in it.
 *
 * A thread that has allocated SCOPE_PAYS times since it entered a scope gets a cache: for each
 * class of short blocks some free ones, which it takes and puts without a lock, and moves in
 * batches under it.
 *
 *     scope_entered -> entry -> cache:  class 1 | block | block |    ... 48
 *                                               count ^
 *
 * In the slabs, and in the counts of the scope, cached blocks are live ones; whoever asks for
 * figures takes them off (cache_take_off). Nobody but the owner reaches into a cache: a thread that
 * ends the blocks of a scope, or bounds it, *shuts* its caches by a store, under the lock of the
 * tree. Each call of the owner looks at that word. If it is under way meanwhile, it counts as one
 * before. A signal handler finds the cache as it finds magazines: each step moves one block.
 *
 * A block that came into a cache by a free begins with the mark, until it is handed out: a free
 * that finds the mark looks for the block in the caches. Those that are open or shut are on a list
 * of the tree: so whoever looks for them meets those of other trees not, however many threads stay
 * there.
 */
#ifndef SCOPE_CACHE_H
#define SCOPE_CACHE_H

#include "base/poison.h"
#include "map/page_map.h"
#include "scope/tree.h"

/* CACHE_GONE: what it has is no block any more. CACHE_SHUT: its blocks have to go back. */
enum cache_state { CACHE_GONE, CACHE_SHUT, CACHE_OPEN };

struct scope_cache {
    struct list_node by_tree;   /* lock of the tree: its caches, unless this one is gone */
    struct hakmem_scope *scope; /* const */
    uint8_t state; /* an enum cache_state; lock of the tree; atomic relaxed, read by the owner */
    uint8_t count[LONG_CLASS_FIRST]; /* by class; atomic relaxed, written by the owner */
    void *blocks[LONG_CLASS_FIRST][SCOPE_CACHED]; /* the same; those below `count` count */
};

/* scope_pop, of a block that need not be a sample. */
void *cache_pop(unsigned size_class);

/* Gives blocks of the class back until so many are left; all, after which the cache is gone. With
 * cancellation put off; in scope/block.c. */
void cache_flush(struct scope_cache *cache, unsigned size_class, unsigned keep);
void cache_empty(struct scope_cache *cache);

/* Shuts an open cache, or one is gone: before it leaves the list, for children of fork. The lock.
 */
ALWAYS_INLINE void cache_change(struct scope_cache *cache, enum cache_state state)
{
    ATOMIC_STORE_RELAXED(&cache->state, state);
    KEEP_STORE_ORDER();
    if (state == CACHE_GONE)
        list_remove(&cache->by_tree);
}

/* The same for all of a scope and of those inside it. The lock. */
void cache_shut(const struct hakmem_scope *scope, enum cache_state state);

/* Takes what lies in the caches of a scope and of those inside it off its live blocks and bytes.
 * The lock. */
void cache_take_off(const struct hakmem_scope *scope, struct hakmem_scope_figures *usage);

/* Of a block that is handed out, which may have been in a cache before. */
ALWAYS_INLINE void cache_unmark(void *block, unsigned size_class)
{
    unpoison(block, size_classes[size_class].size);
    *(mark *)block = 0;
}

/* Whether a cache of the scope has the block. The lock. */
bool cache_has(const struct hakmem_scope *scope, unsigned size_class, const void *block);

#endif
