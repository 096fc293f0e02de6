/* Statistics, added up on request from the counts that the tiers keep anyway.
 *
 * A magazine counts its pops, by one instruction without a measurable cost. Pushes follow from its
 * refills, flushes and contents, and other counts are made once a batch.
 */
#ifndef REPORT_STATS_H
#define REPORT_STATS_H

#include "hakmem/hakmem.h"

enum { TIER_COUNT = HAKMEM_TIER_BIG + 1 };

extern const char stats_tier_names[TIER_COUNT][6];

/* How many fields hakmem_stats has, all of one type, in their order: sums of all tiers, which are
 * also the first fields of hakmem_usage; memory and threads; system calls; later additions. */
enum { STATS_SUMS = 8, STATS_MEMORY = 8, STATS_SYSCALLS = 6, STATS_LATER = 8 };

enum { USAGE_FIELDS = sizeof(struct hakmem_usage) / sizeof(uint64_t) };

/* The system calls that are counted, each name ended by a NUL. */
extern const char stats_syscall_names[];

/* All statistics but those of classes, read together. */
struct snapshot {
    struct hakmem_stats total;
    struct hakmem_usage tier[TIER_COUNT];
};

/* The difference of two figures, or zero if it is negative: they are read one after the other while
 * threads work. */
static inline uint64_t stats_difference(uint64_t figure, uint64_t other)
{
    return figure > other ? figure - other : 0;
}

void stats_collect(struct snapshot *snapshot);

/* The tier of a class, or a twin. */
enum hakmem_tier stats_tier_of(unsigned size_class);

/* The classes of one size, `size_class` (1 .. SIZE_COUNT) and its twin; adds up the counts of
 * heaps, unless stats_collect has done so. */
void stats_collect_class(unsigned size_class, struct hakmem_usage *usage);
void stats_collected_class(unsigned size_class, struct hakmem_usage *usage);

/* The memory of all but big blocks: mapped; of that, in live blocks; and the rest. */
static inline uint64_t stats_arena(const struct snapshot *now)
{
    return stats_difference(now->total.mapped_bytes, now->tier[HAKMEM_TIER_BIG].live_bytes);
}

static inline uint64_t stats_arena_live(const struct snapshot *now)
{
    return stats_difference(now->total.live_bytes, now->tier[HAKMEM_TIER_BIG].live_bytes);
}

static inline uint64_t stats_arena_free(const struct snapshot *now)
{
    return stats_difference(stats_arena(now), stats_arena_live(now));
}

#endif
