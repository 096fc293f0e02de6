/* Caches: free blocks of a scope at hand for a thread that stays in it.
 *
 * A thread that has allocated SCOPE_PAYS times since it entered a scope gets a cache: for each
 * class of short blocks some free ones, which it takes and puts without a lock, and moves in
 * batches under it.
 *
 *     scope_entered -> entry -> cache:  class 1 | block | block |    ... 48
 *                                               count ^
 *
 * A free looks whether its block lies in the span of the last one, whose record tells the class of
 * each unit. That a block starts there is checked when it goes back to its slab, as elsewhere.
 *
 * In the slabs, and in the counts of the scope, cached blocks are live ones; whoever asks for
 * figures takes them off (cache_take_off). Nobody but the owner reaches into a cache: a thread that
 * ends the blocks of a scope, or bounds it, *shuts* its caches: it takes them from the entries of
 * their owners, under the lock of the tree. A call of an owner that is under way counts as one
 * before. A signal handler finds the cache as it finds magazines: each step moves one block.
 *
 * A freed short block begins with the mark, until it is handed out: a free that finds the mark
 * looks for the block in the caches. Those that are open or shut are on a list of the tree: so
 * whoever looks for them meets those of other trees not, however many threads stay there.
 */
#ifndef SCOPE_CACHE_H
#define SCOPE_CACHE_H

#include "base/poison.h"
#include "map/page_map.h"
#include "scope/tree.h"

struct slab;

/* CACHE_GONE: what it has is no block any more. CACHE_SHUT: its blocks have to go back. */
enum cache_state { CACHE_GONE, CACHE_SHUT, CACHE_OPEN };

struct scope_cache {
    struct list_node by_tree;   /* lock of the tree: its caches, unless this one is gone */
    struct hakmem_scope *scope; /* const */
    const struct span *span;    /* owner: of the last block that it freed */
    struct scope_cache **open;  /* const: of the owner's entry */
    uint8_t state; /* an enum cache_state; lock of the tree; atomic relaxed, read by the owner */
    uint8_t class_of[SHORT_MAX / MIN_ALIGNMENT + 1]; /* const: by size; 0: it misses */
    uint8_t count[LONG_CLASS_FIRST]; /* by class; atomic relaxed, written by the owner */
    void *blocks[LONG_CLASS_FIRST][SCOPE_CACHED]; /* the same; those below `count` count */
};

/* A cache for the thread of the entry, which is gone; NULL: there is no memory. */
struct scope_cache *cache_make(struct scope_entry *entry);

/* Opens a cache of which nothing is left, unless a limit is not far, and puts a batch of the slab's
 * blocks into it. The lock. */
void cache_fill(struct scope_cache *cache, struct hakmem_scope *scope, struct slab *slab);

/* Caches have blocks of the class: short ones. */
ALWAYS_INLINE bool cache_serves(unsigned size_class)
{
    return size_class != CLASS_NONE && size_class < LONG_CLASS_FIRST;
}

/* A block of the class for the calling thread, which has entered something; NULL: it has none at
 * hand. */
void *cache_pop(unsigned size_class);

/* Gives blocks of the class back until so many are left; all, after which the cache is gone. With
 * cancellation put off; in scope/block.c. */
void cache_flush(struct scope_cache *cache, unsigned size_class, unsigned keep);
void cache_empty(struct scope_cache *cache);

/* Shuts an open cache, or one is gone: before it leaves the list, for children of fork. The lock.
 */
ALWAYS_INLINE void cache_change(struct scope_cache *cache, enum cache_state state)
{
    ATOMIC_STORE_RELAXED(cache->open, NULL);
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

/* Of a block that is freed. */
ALWAYS_INLINE void cache_mark(void *block, unsigned size_class)
{
    *(mark *)block = class_map_mark(class_map.classes);
    poison_block(block, size_classes[size_class].size);
}

/* Of a block that is handed out, which may have been in a cache before. */
ALWAYS_INLINE void cache_unmark(void *block, unsigned size_class)
{
    unpoison(block, size_classes[size_class].size);
    *(mark *)block = 0;
}

/* Whether a cache of the scope has the block. The lock. */
bool cache_has(const struct hakmem_scope *scope, unsigned size_class, const void *block);

#endif
