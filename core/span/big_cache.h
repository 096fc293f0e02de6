/* The mappings of big blocks: those that are live, and the BigCache of those that are kept for the
 * next block that they fit.
 *
 *     part     one a shard: a lock, and mappings that never leave it
 *     by size  lists of cached mappings of about the same length: which one fits a request
 *     by age   a queue, oldest first: which one goes when some must
 *
 *     | live ..... | cached: dirty ... | clean ... | live ... |     low to high
 *
 * A block comes out of the part of its thread's shard and goes back to the part that it came from,
 * so threads that share nothing do not meet. Only a part that has nothing that fits asks the
 * others, and only then the system.
 *
 * A mapping that is too long is split. Those of a part that touch and are both cached are joined,
 * so that lengths do not decay: the page map tells what begins or ends at an address. `dirty` is
 * how much of a mapping, from its start, may have been touched: that is
 * what is bounded, over all parts, and what goes back to the system, the oldest first. What was
 * given back keeps its addresses while these are few, since mapping anew costs more, and other
 * threads wait.
 *
 * Any thread may call anything here; no search grows with the number of mappings.
 */
#ifndef SPAN_BIG_CACHE_H
#define SPAN_BIG_CACHE_H

#include "base/idle.h"
#include "base/list.h"
#include "map/page_map.h"
#include "os/lock.h"

struct big {
    struct region region;  /* const while registered, but for moves by the owner */
    unsigned part;         /* const: whose lock this is about; a record never leaves its part */
    size_t mapped;         /* bytes of the mapping; owner of the block, or lock when cached */
    size_t dirty;          /* leading bytes that may not be zero; as `mapped` */
    bool live;             /* lock: handed out */
    bool cached;           /* lock: in the cache; when neither, somebody works on it */
    bool zeroed;           /* owner: all of it read as zero when it was handed out */
    bool apart;            /* owner: moved or cut off, see big.c */
    uint64_t origin;       /* as `mapped`: what was mapped or moved at once has the same number */
    bool huge;             /* huge pages were asked for; as `mapped` */
    struct sample *sample; /* atomic, owner: of the live block, or NULL */
    /* Of the hardened library alone are these four. */
    uint8_t fence_before;     /* const: how the page below it is closed */
    uint8_t fence_behind;     /* const: how what is behind it is */
    size_t closed;            /* owner: how many bytes that is */
    uint32_t word;            /* owner: how the block was asked for, but for its size */
    struct list_node by_size; /* lock; of a record that is not in use: the next such */
    struct list_node by_age;  /* lock */
};

struct big_stats {
    uint64_t allocated; /* since the start */
    uint64_t freed;
    uint64_t live_blocks;
    uint64_t live_bytes;
    uint64_t cached_bytes; /* that may be dirty */
    uint64_t clean_bytes;  /* kept mapped without memory */
};

/* A snapshot, in which a block that is just being resized has no bytes. */
struct big_stats big_stats(void);

/* Bytes of all live mappings, read without locks. */
size_t big_live_bytes(void);

/* Makes a fresh mapping known: its first `used` bytes are live, the rest is cached. NULL without
 * memory for records. */
struct big *big_cache_add(unsigned part, char *base, size_t size, size_t used);

/* Takes a mapping of at least `size` bytes out, at a multiple of `alignment`, or NULL: then it is
 * live. Looks into the part, then into the others. */
struct big *big_cache_take(unsigned part, size_t size, size_t alignment);

/* The same for a mapping that is shorter, but at least half of the size, for the caller to make it
 * longer. It is not counted until big_cache_return. */
struct big *big_cache_take_shorter(unsigned part, size_t size);

/* The block is no longer live; false if it was not, or does not start there. */
bool big_cache_retire(struct big *big, const void *block);

/* Takes in a mapping that is not counted any more, or unmaps it if it is longer than the bound;
 * then gives back what is beyond the bound. */
void big_cache_put(struct big *big);

/* Makes a live mapping at least `size` bytes long by what is cached behind it, or cuts it there and
 * caches the rest. False: that is not possible, nothing has changed. */
bool big_cache_lengthen(struct big *big, size_t size);
bool big_cache_shorten(struct big *big, size_t size);

/* Around a change of a live mapping's place or length by the system: it is not counted then. `new`
 * when it was taken to be made longer. */
void big_cache_leave(struct big *big);
void big_cache_return(struct big *big, bool new);

/* The record of what was unmapped, and is not registered, may be used again. */
void big_cache_drop(struct big *big);

/* Gives so much dirty memory back, oldest first; returns bytes. */
size_t big_cache_evict(size_t bytes);

/* Unmaps everything that is cached; returns the dirty bytes. */
size_t big_cache_empty(void);

/* The least that was cached and dirty since the last call by the same watcher. */
size_t big_cache_unused(enum idle_watcher watcher);

/* Dirty bytes in the cache; and all that it maps. */
size_t big_cache_bytes(void);
size_t big_cache_mapped(void);

/* Parts that were used. */
unsigned big_cache_parts(void);

/* Guards a part. */
struct lock *big_lock(unsigned part);

/* In a fork child: makes lists and sums of a part anew, whose lock was held by a thread that does
 * not exist here. */
void big_cache_repair(unsigned part);

#endif
