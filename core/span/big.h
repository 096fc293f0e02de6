/* Big blocks: mappings of their own, behind the BigCache (big_cache.h).
 *
 * A mapping starts at any page of the system, so that neighbouring blocks are one mapping to the
 * system, which limits their number. It is at least 2 MiB long, so that no two start in the same 2
 * MiB, for which the page map has one entry.
 *
 * A request is served by a cached mapping that fits (what is behind the block stays cached for it),
 * or by a shorter one that mremap makes longer: either way resident memory is used before the
 * system is asked for more.
 *
 * Huge pages are requested if earlier blocks suggest that all of a block will be touched (huge.h).
 *
 * No lock is held across a system call: a mapping is out of the cache while a thread works on it.
 */
#ifndef SPAN_BIG_H
#define SPAN_BIG_H

#include "base/probe.h"
#include "span/big_cache.h"

/* Requests from this size on are big. */
#define BIG_MIN (LARGE_MAX + 1)

/* A block of `size` bytes at a multiple of `alignment`, for a thread of the shard of that
 * number; zeroed if `zero`. NULL: no memory. */
void *big_alloc(unsigned part, size_t size, size_t alignment, bool zero);

/* True if the mapping covers the address: others may share the 2 MiB that it starts or ends in. */
ALWAYS_INLINE bool big_covers(const struct big *big, const void *address)
{
    return (uintptr_t)address - (uintptr_t)big->region.base < big->mapped;
}

/* Usable bytes. Aborts, naming the API function `call`, if `block` is not a live big block. */
size_t big_size(const struct big *big, const void *block, const char *call);

/* Aborts if `block` lies inside a live big block, but not at its start. */
void big_check_interior(const void *block, const char *call);

/* Ends the sample of a block that is about to be freed, and returns it, or NULL. */
ALWAYS_INLINE struct sample *big_end_sample(struct big *big, const void *block)
{
    if (LIKELY(!ATOMIC_LOAD_RELAXED(&big->sample)) || block != big->region.base)
        return NULL;
    struct sample *sample = __atomic_exchange_n(&big->sample, NULL, __ATOMIC_ACQ_REL);
    if (sample)
        PROBE_OTEL(1, free, block);
    return sample;
}

/* Frees the block; aborts as big_size does. */
void big_free(struct big *big, void *block, const char *call);

/* Changes the size without copying; returns the block's address; NULL: it is as before. `size` >=
 * BIG_MIN. */
void *big_resize(struct big *big, size_t size);

#endif
