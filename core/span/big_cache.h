/* The mappings of big blocks: live ones, and the BigCache of those kept for the next blocks that
 * they fit.
 *
 *     part      one of a few: a lock, and mappings that never leave it
 *     by_size   lists of cached mappings of about the same length, to find one that fits
 *     by_age    a queue, oldest first, to find one that goes
 *
 * A block comes out of the part of its thread's shard and goes back to the part that it came from,
 * so threads that share nothing seldom meet. If nothing fits there, the others are asked, and only
 * then the system.
 *
 * A mapping serves one block at a time. What is behind a shorter block is its *rest*: cached for
 * this block, which has it again when it grows or is freed, until it is the rest's turn to go: then
 * it becomes a mapping like others.
 *
 *     | block: mapped bytes | rest: dirty ... | clean ... |     low to high
 *
 * `dirty` is how many bytes of a mapping, from its start, may have been touched: those that are
 * cached are bounded, over all parts, and go back to the system, the oldest first. What is wholly
 * clean is unmapped.
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
    struct region region;  /* const while registered, except for moves by the owner */
    uint8_t part;          /* const: whose lock is meant; a record never leaves its part */
    size_t mapped;         /* bytes of it; owner of the block, or lock when cached */
    size_t rest;           /* lock: bytes behind a live block that are cached for it */
    size_t dirty;          /* leading bytes of both that may not be zero; lock, atomic */
    bool live;             /* lock: handed out */
    bool cached;           /* lock: in the cache; if neither, a thread works on it */
    bool zeroed;           /* as `mapped`: the block read as zero when it was handed out */
    uint8_t swept;         /* as `mapped`: how many sweeps more before it is looked at, see big.c */
    bool own_mapping;      /* owner: moved or cut off, see big.c */
    bool huge;             /* huge pages were requested; as `mapped` */
    struct sample *sample; /* atomic, owner: of the live block, or NULL */
    /* The next four are of the hardened library only. */
    uint8_t fence_before;     /* const: how the page below is closed */
    uint8_t fence_behind;     /* const: how the pages behind are closed */
    size_t closed;            /* owner: bytes of these */
    uint32_t word;            /* owner: alignment and form of the request */
    struct list_node by_size; /* lock; in an unused record: the next such */
    struct list_node by_age;  /* lock */
};

struct big_stats {
    uint64_t allocated; /* since the start */
    uint64_t freed;
    uint64_t live_blocks;
    uint64_t live_bytes;
    uint64_t cached_bytes; /* dirty ones */
};

/* A snapshot. */
struct big_stats big_stats(void);

/* Bytes of all live mappings, read without locks. */
size_t big_live_bytes(void);

/* Enters a fresh mapping, a live one, into the part of the shard. NULL: no memory for records. */
struct big *big_cache_add(unsigned shard, char *base, size_t size);

/* Takes out a mapping of at least `size` bytes, at a multiple of `alignment`, and makes it live;
 * NULL: none fits. Looks into the shard's part, then into the others. */
struct big *big_cache_take(unsigned shard, size_t size, size_t alignment);

/* Takes out a shorter mapping of at least a quarter of the size, which the caller makes longer. It
 * is not counted until big_cache_recount. */
struct big *big_cache_take_shorter(unsigned shard, size_t size);

/* Ends the block's life; false: it was not live, or does not start there. */
bool big_cache_retire(struct big *big, const void *block);

/* Takes in a mapping that is not counted any more, or unmaps it if it is longer than the bound;
 * then gives back the excess over the bound. */
void big_cache_put(struct big *big);

/* Makes a live block `size` bytes long; what is behind is its rest. False: so much is not there,
 * and the block has all of it. */
bool big_cache_fit(struct big *big, size_t size);

/* Makes a cached mapping of a live block's rest. False: there is no memory for its record. */
bool big_cache_part_with_rest(struct big *big);

/* Counts a live mapping with the length `now`. `before`: the length that it counts with, 0 if it is
 * from big_cache_take_shorter. */
void big_cache_recount(struct big *big, size_t before, size_t now);

/* Frees the record of an unmapped, unregistered mapping. */
void big_cache_drop(struct big *big);

/* Gives `bytes` of dirty memory back, oldest first; SIZE_MAX: unmaps all. Returns bytes. */
size_t big_cache_evict(size_t bytes);

/* The least dirty bytes that were cached since the last call by the same watcher; for a tick, those
 * beyond the bound without what was taken lately, if that is more; for growth, without rests, which
 * soon serve their blocks again or their next ones. */
size_t big_cache_unused(enum idle_watcher watcher);

/* Dirty bytes in the cache; all mapped bytes. */
size_t big_cache_bytes(void);
size_t big_cache_mapped(void);

/* Parts in use: the first ones. */
unsigned big_cache_parts(void);

/* In a fork child: repairs lists and sums of a part whose lock was held by a thread that does not
 * exist here. */
void big_cache_repair(unsigned part);

#endif
