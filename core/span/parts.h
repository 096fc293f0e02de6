/* Parts: tables with a part of the cache of big blocks for each shard.
 *
 * The first one is part of the library, and each other one is made, from metadata, when its shard
 * first asks for it: they are large, and most processes have few shards. All parts below one that
 * was asked for are made, so that a loop over them needs their count alone. A part that was made
 * stays.
 *
 * No lock: the table is set by atomic steps.
 */
#ifndef SPAN_PARTS_H
#define SPAN_PARTS_H

#include "base/atomic.h"
#include "base/macros.h"

/* As many as there are shards for heaps. */
enum { SHARD_PARTS_MAX = 64 };

struct parts {
    void *part[SHARD_PARTS_MAX]; /* atomic, any thread: see parts_use */
    unsigned count; /* atomic, any thread: release on exchange pairs with acquire on load */
    size_t size;    /* const: bytes of a part */
};

/* Parts that were made. Never shrinks. */
ALWAYS_INLINE unsigned parts_count(const struct parts *parts)
{
    return ATOMIC_LOAD_ACQUIRE(&parts->count);
}

/* A part that was made. */
ALWAYS_INLINE void *parts_at(const struct parts *parts, unsigned part)
{
    return ATOMIC_LOAD_RELAXED(&parts->part[part]);
}

/* Makes sure that the part is made; returns its number, or, without memory for it, that of the
 * first. To be called without locks. */
unsigned parts_use(struct parts *parts, unsigned part);

#endif
