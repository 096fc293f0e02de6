/* A trial: one workload under one schedule, in a process of its own, from its very first malloc on.
 *
 *     faults on     the workload runs; every result is checked
 *     faults off    what is live is intact; every tier serves again; after everything was freed
 *                   and purged, no more memory is held than after the same without faults
 *
 * Thread rule: the process that makes trials has one thread and never allocates, so that its
 * children start with an allocator that was never used.
 */
#ifndef FAULT_TRIAL_H
#define FAULT_TRIAL_H

#include "schedule.h"
#include "workloads.h"

/* What a process holds, by the allocator's word and by the system's. */
struct footprint {
    uint64_t live_blocks;
    uint64_t live_bytes;
    uint64_t mapped_bytes;
    uint64_t committed_bytes;
    uint64_t retained_bytes;
    uint64_t metadata_bytes;
    uint64_t unaccounted_bytes; /* address space that no figure of the allocator explains */
    uint64_t resident_bytes;
};

struct trial_result {
    bool ok;
    uint64_t failures;       /* system calls that failed */
    uint64_t refused;        /* allocations that were refused */
    struct footprint partly; /* after most was freed and purged */
    struct footprint finally;
};

/* Makes the trial; what is wrong is printed on standard error. `expected` is the result of the same
 * workload without faults, NULL when this is it. */
void trial_run(
    const struct workload *workload, const struct schedule *schedule,
    const struct trial_result *expected, struct trial_result *result);

#endif
