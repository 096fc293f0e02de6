/* One part of the BigCache (big_cache.h): its lists of cached mappings.
 *
 * A mapping is in the cache or out of it. Out of it, it is live, or a thread works on it.
 *
 * All functions but big_part_lock_with_spare are called with the part's lock held.
 */
#ifndef SPAN_BIG_PART_H
#define SPAN_BIG_PART_H

#include "base/tuning.h"
#include "span/big_cache.h"

/* So few that nobody has to make them: threads seldom hold one at once, as a call works longer
 * outside it. */
enum { BIG_PARTS = 8 };

/* Lists by length, which big_part_length_of numbers; the last has all mappings from 480 GiB on. */
enum { BIG_LENGTHS = 128 };

struct big_part {
    struct lock lock CACHE_ALIGNED;
    size_t live_bytes;         /* lock; read as an atomic by any thread, as are the next four */
    size_t taken_bytes;        /* of blocks, and what they grew by, since the last tick */
    size_t cached_bytes;       /* dirty ones, rests of live blocks included */
    size_t rest_bytes;         /* of these rests */
    size_t mapped_bytes;       /* of cached mappings and rests */
    uint64_t allocated, freed; /* lock: blocks since the start */
    struct list spares;        /* lock: unused records */
    struct idle unused;        /* lock: of the cached bytes */
    struct list by_size[BIG_LENGTHS];   /* lock: cached mappings, youngest first */
    uint64_t lengths[BIG_LENGTHS / 64]; /* lock: bit per non-empty list of by_size */
    struct queue by_age;                /* lock: those, and live blocks with rests, oldest first */
};

extern struct big_part big_parts[BIG_PARTS];

ALWAYS_INLINE struct big_part *big_part_of(const struct big *big)
{
    return &big_parts[big->part];
}

/* Takes the part's lock, and makes sure, if there is memory, of a spare record. */
void big_part_lock_with_spare(struct big_part *part);

/* A record for a mapping, in no list; NULL: there is no spare one. */
struct big *big_part_record(struct big_part *part, char *base, size_t mapped);

/* The list that a mapping of `size` bytes belongs to. */
unsigned big_part_length_of(size_t size);

/* Counts a live block that has changed from `before` to `now` bytes. */
void big_part_count(struct big_part *part, size_t before, size_t now);

/* Puts the mapping into the lists, or takes it out. */
void big_part_insert(struct big_part *part, struct big *big);
void big_part_extract(struct big_part *part, struct big *big);

/* Makes a mapping that is in no list a live block of `size` bytes, and what is behind its rest. */
void big_part_hand_out(struct big_part *part, struct big *big, size_t size);

/* Ends a live block's life; it has its rest again, and is in no list. */
void big_part_retire(struct big_part *part, struct big *big);

/* Makes the live block `size` bytes long, or as long as it and its rest are, and what is behind its
 * rest, youngest in the queue. */
void big_part_fit(struct big_part *part, struct big *big, size_t size);

/* Makes a mapping of its own, in no list, of the end of a live block's rest that has so many dirty
 * bytes, or of all of it. NULL: there is no spare record, or no room in the page map. What is left
 * of the rest is the youngest in the queue. */
struct big *big_part_detach(struct big_part *part, struct big *big, size_t bytes);

/* Lowers `unused` to the cached bytes. Call it after some have really gone, not when a mapping is
 * only relisted. */
void big_part_note_unused(struct big_part *part);

/* A mapping of at least `size` bytes at a multiple of `alignment`, from the first list that has
 * one. */
struct big *big_part_find(const struct big_part *part, size_t size, size_t alignment);

/* A mapping shorter than `size`, but of at least LENGTHENED_PART of it, from the list of the
 * longest. */
struct big *big_part_find_shorter(const struct big_part *part, size_t size);

#endif
