/* One part of the BigCache (big_cache.h): its lists of cached mappings, and who is whose neighbour.
 *
 * A mapping is in the cache or out of it. Out of it, it is live, or somebody's who works on it.
 *
 * All functions but big_part_lock_with_spare are called with the part's lock held.
 */
#ifndef SPAN_BIG_PART_H
#define SPAN_BIG_PART_H

#include "span/big_cache.h"
#include "span/parts.h"

/* Lengths from 2 MiB to all of the address space, in multiples of 2 MiB, eight steps a doubling. */
enum {
    BIG_LENGTH_STEPS = 8,
    BIG_LENGTHS = BIG_LENGTH_STEPS * (ADDRESS_BITS - REGION_SHIFT),
    BIG_LENGTH_WORDS = (BIG_LENGTHS + 63) / 64
};

/* Cached mappings, those with dirty bytes or those without. */
struct big_shelf {
    struct list by_size[BIG_LENGTHS];   /* lock: youngest first */
    uint64_t lengths[BIG_LENGTH_WORDS]; /* lock: bit per non-empty list of by_size */
    struct queue by_age;                /* lock: oldest first */
};

enum { BIG_DIRTY, BIG_CLEAN, BIG_SHELVES };

struct big_part {
    struct lock lock CACHE_ALIGNED;
    size_t live_bytes;         /* lock; read as an atomic by any thread, as are the next two */
    size_t bytes[BIG_SHELVES]; /* dirty bytes of the one shelf, all bytes of the other */
    size_t mapped_bytes;       /* of both shelves */
    uint64_t allocated, freed; /* lock: blocks since the start */
    struct big *newest;        /* lock: what was mapped last, to find its neighbours */
    struct list spares;        /* lock: records that are not in use */
    struct idle unused;        /* lock: of the dirty bytes */
    size_t live_peak;          /* as live_bytes: most of them since the last tick */
    size_t live_peak_before;   /* as live_bytes: since the one before, until the last */
    struct big_shelf shelf[BIG_SHELVES]; /* lock */
};

extern struct parts big_parts;

ALWAYS_INLINE struct big_part *big_part_at(unsigned part)
{
    return parts_at(&big_parts, part);
}

/* Takes the lock, with a record at hand for a split if there is memory for one. */
void big_part_lock_with_spare(struct big_part *part);

/* Which list a mapping of `size` bytes belongs to, and on which shelf. */
unsigned big_part_length_of(size_t size);
unsigned big_part_shelf_of(const struct big *big);

/* Adds to the bytes that are live; less than none when some no longer are. */
void big_part_add_live(struct big_part *part, size_t bytes);

/* Puts the mapping into the lists, or takes it out. */
void big_part_insert(struct big_part *part, struct big *big);
void big_part_extract(struct big_part *part, struct big *big);

/* Puts it in together with its neighbours, if these are cached. */
void big_part_take_in(struct big_part *part, struct big *big);

/* To be called when what is cached has become less, and not in the middle of an exchange. */
void big_part_note_unused(struct big_part *part);

/* Links two mappings, or none, as neighbours. */
void big_part_link(struct big *low, struct big *high);

/* A mapping that moves, or ends, has no neighbours. */
void big_part_unlink(struct big_part *part, struct big *big);

/* Joins the mapping with the one behind it; neither is in a list. */
void big_part_join(struct big_part *part, struct big *low, struct big *high);

/* True when one is linked to the other and they are of one kind. A child of fork may have linked
 * what was just being cut. */
bool big_part_touch(const struct big *low, const struct big *high);

/* True if two adjacent mappings may be merged, that is, unless a clean one would then count as
 * dirty. */
bool big_part_may_join(const struct big *low, const struct big *high);

/* Cuts the mapping off behind `size` bytes and caches the rest; false: nothing has changed. What is
 * left of a huge page is not cut in two. */
bool big_part_split(struct big_part *part, struct big *big, size_t size);

/* The first mapping of at least `size` bytes in the lists from its own on, at a multiple of
 * `alignment`. */
struct big *big_part_find(const struct big_shelf *shelf, size_t size, size_t alignment);

/* The longest of those that are shorter, but at least half as long. */
struct big *big_part_find_shorter(const struct big_shelf *shelf, size_t size);

/* Makes a mapping that is in no list live. */
void big_part_hand_out(struct big_part *part, struct big *big);

#endif
