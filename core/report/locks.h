/* Counts what happens at the locks, in the measuring library (os/lock_profile.h).
 *
 * Some kinds have one lock; others have many, in parts that shards are spread over. Of these, the
 * busiest one is reported, and the one at which threads meet most: the sum over hundreds of locks
 * says nothing about any of them.
 */
#ifndef REPORT_LOCKS_H
#define REPORT_LOCKS_H

#include "base/macros.h"

enum lock_kind { LOCK_BIN, LOCK_PAGE_HEAP, LOCK_BIG, LOCK_METADATA, LOCK_REGISTRY, LOCK_KINDS };

extern const char lock_kind_names[LOCK_KINDS][12];

struct lock_usage {
    uint64_t acquisitions;
    uint64_t waits;
    uint64_t handovers;
    uint64_t interrupted;
    uint64_t waited_ns;
    uint64_t held_ns;
};

struct lock_kind_usage {
    uint64_t parts;         /* parts that shards are spread over, each with its own locks */
    uint64_t locks;         /* locks that were taken at all */
    struct lock_usage all;  /* all locks together */
    struct lock_usage busy; /* the one that was held longest */
    struct lock_usage met;  /* the one with the most handovers */
};

void locks_collect(enum lock_kind kind, struct lock_kind_usage *usage);

/* The profile's own cost for taking and releasing a lock. */
uint64_t locks_profile_cost_ps(void);

#endif
