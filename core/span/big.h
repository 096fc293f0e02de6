/* Big blocks: mappings of their own, aligned to 2 MiB, behind the BigCache.
 *
 * A freed block stays mapped in the BigCache, up to a bound in bytes and in time. A request is
 * served from it by a mapping that fits, by the front of a longer one (the rest stays cached), or
 * by a shorter one that mremap makes longer: either way memory that is resident already is used
 * before the system is asked for more.
 *
 * One lock, never held across a system call: a mapping that is worked on is out of the cache.
 */
#ifndef SPAN_BIG_H
#define SPAN_BIG_H

#include "map/page_map.h"
#include "os/lock.h"

/* Requests from this size on are big. */
#define BIG_MIN REGION_SIZE

struct big;

/* A block of `size` bytes at a multiple of `alignment`; zeroed if `zero`. NULL: no memory. */
void *big_alloc(size_t size, size_t alignment, bool zero);

/* Usable bytes. `call` names the API function: aborts when `block` is not a live big block. */
size_t big_size(const struct big *big, const void *block, const char *call);

/* Aborts when `block` lies inside the live big block, but not at its start. */
void big_check_interior(const struct big *big, const void *block, const char *call);

/* Frees the block; aborts as big_size does. */
void big_free(struct big *big, void *block, const char *call);

/* Changes the size without copying; returns where the block is now, or NULL when it stays as it
 * was. `size` >= BIG_MIN. */
void *big_resize(struct big *big, size_t size);

/* Unmap cached mappings, oldest first: until `bytes` are gone, or as many bytes as were cached at
 * any time since the last call of big_cache_expire. Return bytes unmapped. */
size_t big_cache_evict(size_t bytes);
size_t big_cache_expire(void);

struct big_stats {
    uint64_t allocated; /* since the start */
    uint64_t freed;
    uint64_t live_blocks;
    uint64_t live_bytes;
    uint64_t cached_bytes;
};

/* A snapshot, in which a block that is just being resized has no bytes. */
struct big_stats big_stats(void);

struct lock *big_lock(void);

#endif
