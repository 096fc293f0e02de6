/* The BigCache: mappings of freed big blocks, kept for the next one that fits.
 *
 *     by size     lists of mappings of about the same length      which one fits a request
 *     by age      a queue, oldest first                           which one goes when some have to
 *
 * It is bounded in bytes; what nobody needed for a while goes back to the system. A mapping that is
 * longer than the bound never comes in, so that it cannot drive all others out.
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
    struct region region;     /* const while registered, but for moves by the owner */
    size_t mapped;            /* bytes of the mapping; owner of the block, or lock when cached */
    size_t dirty;             /* leading bytes that may not be zero; as `mapped` */
    bool live;                /* lock: handed out */
    bool cached;              /* lock: in the cache; when neither, somebody works on it */
    bool zeroed;              /* owner: all of it read as zero when it was handed out */
    bool apart;               /* owner: moved or cut off, see big.c */
    bool huge;                /* huge pages were asked for; as `mapped` */
    struct list_node by_size; /* lock */
    struct list_node by_age;  /* lock */
};

/* Makes the mapping part of the page map; NULL without memory for that. */
struct big *big_register(char *base, size_t size);

/* Takes a mapping out for a block of `size` bytes at a multiple of `alignment`: the shortest of at
 * least that size, failing that one of at least half of it, which the caller has to make longer.
 * NULL when there is none; else it is live. */
struct big *big_cache_take(size_t size, size_t alignment);

/* Takes in a mapping that is not live any more, or unmaps it if it is longer than the bound; then
 * unmaps the oldest until the bound holds. */
void big_cache_put(struct big *big);

/* Unmap cached mappings, oldest first: until `bytes` are gone, or no more than that. Return bytes
 * unmapped. */
size_t big_cache_evict(size_t bytes);
size_t big_cache_trim(size_t bytes);

/* The least that was cached since the last call by the same watcher. */
size_t big_cache_unused(enum idle_watcher watcher);

/* Bytes of the mappings. */
size_t big_cache_bytes(void);

/* Guards the cache, and what big.c counts. */
struct lock *big_lock(void);

/* Makes the lists anew after a thread that is gone held the lock. */
void big_cache_repair(void);

/* Debug walker. */
void big_cache_check(void);

#endif
