/* Statistics, gathered from what the tiers keep anyway when somebody asks.
 *
 * A magazine counts its pops, by one instruction that measured as free; pushes follow from what
 * went in and what is there, and the rest is counted once a batch.
 */
#ifndef OBSERVE_STATS_H
#define OBSERVE_STATS_H

#include "hakmem/hakmem.h"

/* A snapshot of everything. */
void stats_collect(struct hakmem_stats *stats);

/* A snapshot of the classes of one size, `class` (1 .. SIZE_COUNT) and its twin. */
void stats_collect_class(unsigned class, struct hakmem_usage *usage);

#endif
