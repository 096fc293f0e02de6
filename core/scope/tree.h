/* The records of scopes, their tree, and what each holds.
 *
 * A scope that is made while a thread is in another one lies inside that, and counts there as well.
 * So scopes are trees, and a tree has one lock, that of its root: whatever counts in several scopes
 * changes in one step, and no thread holds two locks.
 *
 *     tenant     live: 3 blocks, one of its own          the root: its lock guards both
 *       request  live: 2 blocks
 *
 * A record is made once and never given back. An ended scope's waits behind SCOPE_RECORDS_KEPT
 * others before it serves again, with its name and the addresses of some spans, so that a stale
 * pointer to it, or to a block, mostly leads to a message.
 *
 * Lock: that of the tree guards all fields that do not say otherwise.
 */
#ifndef SCOPE_TREE_H
#define SCOPE_TREE_H

#include "base/list.h"
#include "hakmem/hakmem.h"
#include "map/size_class.h"
#include "os/lock.h"
#include "scope/scope.h"

/* The longest name, and a NUL. */
#define SCOPE_NAME_BYTES 48

struct hakmem_scope {
    struct hakmem_scope *next;   /* const once linked: the record made before */
    unsigned arena;              /* const once linked: its number for jemalloc's calls, from 1 on */
    struct list_node by_end;     /* lock of the records: the queue of ended ones */
    struct hakmem_scope *parent; /* const while live, as the next three and the name */
    struct hakmem_scope *root;   /* of its tree; its own in a root */
    hakmem_scope_callback *callback;
    void *argument;
    struct lock lock;   /* used in a root alone */
    bool lives;         /* atomic, any thread: release where it begins pairs with acquire */
    size_t limit;       /* of live_bytes, but for caches; SIZE_MAX: none */
    size_t live_bytes;  /* with the scopes inside it, and what their caches have (scope/cache.h) */
    size_t live_blocks; /* the same */
    struct list open;   /* spans with free units */
    struct list full;   /* spans without, and those of big blocks */
    unsigned spans;     /* on both lists, without those of big blocks; atomic relaxed */
    unsigned empty;     /* of both lists, those without slabs */
    struct list caches; /* in a root alone: of all scopes of the tree (scope/cache.h) */
    unsigned inside;    /* live scopes whose parent it is */
    bool was_reset;     /* blocks may be gone that nobody freed */
    struct list slabs[2][SIZE_COUNT + 1]; /* by slab_is_sampled and class: with free blocks */
    char name[SCOPE_NAME_BYTES];
};

/* Guards the queue of ended records, and the unused ones of spans. */
extern struct lock scope_records_lock;

/* All records, the newest first, live and ended. Any thread. */
struct hakmem_scope *scope_first(void);

/* Lets the record of an ended scope, which has no blocks, wait for its next use. To be called
 * without locks. */
void scope_retire(struct hakmem_scope *scope);

/* In a child of fork: the queue was left in the middle of a change, and is given up. */
void scope_repair_records(void);

ALWAYS_INLINE bool scope_lives(const struct hakmem_scope *scope)
{
    return ATOMIC_LOAD_ACQUIRE(&scope->lives);
}

/* Locks the tree of a scope; false: it has ended. */
bool scope_try_lock(struct hakmem_scope *scope);

/* Locks the tree of a scope that a caller passed to `call`; aborts if it has ended. */
void scope_lock(struct hakmem_scope *scope, const char *call);
void scope_unlock(struct hakmem_scope *scope);

/* Whether `scope` is `outer`, or lies in it. */
bool scope_is_inside(const struct hakmem_scope *scope, const struct hakmem_scope *outer);

/* The scope, of this one and those around it, whose limit has no room for so many bytes more; NULL:
 * all have. */
struct hakmem_scope *scope_at_limit(struct hakmem_scope *scope, size_t bytes);

/* Whether so many bytes more would leave the scope and those around it below half of their limits.
 */
bool scope_has_room(const struct hakmem_scope *scope, size_t bytes);

/* Counts blocks that came, or, with negative numbers, went, in the scope and those around it. Shuts
 * the caches of one that is half full with that. */
void scope_count(struct hakmem_scope *scope, size_t bytes, size_t blocks);

/* Asks the callback of a scope that lacks so many bytes to make room; true: it says that trying
 * again is worth while. To be called without locks, with cancellation put off. */
bool scope_ask(struct hakmem_scope *full, size_t bytes);

/* Aborts, since `call` was made with a scope that has ended. To be called without locks. */
_Noreturn SLOW_PATH void scope_end_used(const struct hakmem_scope *scope, const char *call);

#endif
