/* One part of the BigCache (big_cache.h): its lists of cached mappings, splitting and joining.
 *
 * A mapping is in the cache or out of it. Out of it, it is live, or a thread works on it.
 *
 * All functions but big_part_lock_with_spares are called with the part's lock held.
 */
#ifndef SPAN_BIG_PART_H
#define SPAN_BIG_PART_H

#include "base/tuning.h"
#include "span/big_cache.h"
#include "span/parts.h"

/* Lists by length, which big_part_length_of numbers; the last has all mappings from 480 GiB on. */
enum { BIG_LENGTHS = 128 };

struct big_part {
    struct lock lock CACHE_ALIGNED;
    size_t live_bytes;         /* lock; read as an atomic by any thread, as are the next three */
    size_t taken_bytes;        /* of blocks, and what they grew by, since the last tick */
    size_t cached_bytes;       /* dirty ones */
    size_t mapped_bytes;       /* of cached mappings */
    uint64_t allocated, freed; /* lock: blocks since the start */
    char *newest;              /* lock: start of the last mapping, */
    uint64_t newest_origin;    /* and its origin */
    uint64_t origins;          /* lock: the last number used as an origin */
    struct list spares;        /* lock: unused records */
    struct idle unused;        /* lock: of the cached bytes */
    /* Cached mappings: */
    struct list by_size[BIG_LENGTHS];   /* lock: youngest first */
    uint64_t lengths[BIG_LENGTHS / 64]; /* lock: bit per non-empty list of by_size */
    struct queue by_age;                /* lock: oldest first */
};

extern struct parts big_parts;

ALWAYS_INLINE struct big_part *big_part_at(unsigned part)
{
    return parts_at(&big_parts, part);
}

ALWAYS_INLINE struct big_part *big_part_of(const struct big *big)
{
    return big_part_at(big->part);
}

/* Takes the lock of the part with that number, and makes sure, if there is memory, of spare records
 * for a mapping and a split of it. */
struct big_part *big_part_lock_with_spares(unsigned number);

/* A record for a mapping, in no list; NULL: there is no spare one. */
struct big *big_part_record(struct big_part *part, char *base, size_t mapped);

/* The list that a mapping of `size` bytes belongs to. */
unsigned big_part_length_of(size_t size);

/* Counts a live block that has changed from `before` to `now` bytes. */
void big_part_count(struct big_part *part, size_t before, size_t now);

/* Puts the mapping into the lists, or takes it out. */
void big_part_insert(struct big_part *part, struct big *big);
void big_part_extract(struct big_part *part, struct big *big);

/* Puts it in, joined with the cached mappings right before and behind it, unless clean bytes would
 * then count as dirty. */
void big_part_take_in(struct big_part *part, struct big *big);

/* Lowers `unused` to the cached bytes. Call it after some have really gone, not when a mapping is
 * only relisted. */
void big_part_note_unused(struct big_part *part);

/* The cached mapping of the part that starts at the address, or NULL. */
struct big *big_part_cached_at(const struct big_part *part, const char *address);

/* Joins the mapping with the one behind it; neither is in a list. */
void big_part_join(struct big_part *part, struct big *low, struct big *high);

/* Cuts the mapping off behind `size` bytes and caches the rest; false: nothing has changed. No huge
 * page is cut in two. */
bool big_part_split(struct big_part *part, struct big *big, size_t size);

/* A mapping of at least `size` bytes at a multiple of `alignment`, from the first list that has
 * one. */
struct big *big_part_find(const struct big_part *part, size_t size, size_t alignment);

/* A mapping shorter than `size`, but at least half as long, from the list of the longest. */
struct big *big_part_find_shorter(const struct big_part *part, size_t size);

/* Makes a mapping that is in no list live. */
void big_part_hand_out(struct big_part *part, struct big *big);

#endif
