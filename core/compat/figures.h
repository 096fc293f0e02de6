/* Sums of hakmem's figures under the names of other allocators. The figures of a snapshot are read
 * one after the other while threads work, so differences are kept from falling below zero. */
#ifndef COMPAT_FIGURES_H
#define COMPAT_FIGURES_H

#include "report/stats.h"

/* The most that may be resident: slabs, big blocks and records in use, and memory not given back.
 */
static inline uint64_t figures_resident(const struct hakmem_stats *total)
{
    return total->committed_bytes + total->retained_bytes + total->metadata_bytes;
}

/* Addresses that are held for blocks and records. */
static inline uint64_t figures_mapped(const struct hakmem_stats *total)
{
    return total->mapped_bytes + total->metadata_bytes;
}

/* Addresses that are held for blocks and cost no memory. */
static inline uint64_t figures_unused_addresses(const struct hakmem_stats *total)
{
    return stats_difference(total->mapped_bytes, total->committed_bytes + total->retained_bytes);
}

#endif
