/* What the allocator does while its system calls fail: five programs in little. Each reaches
 * other paths to the system; all together reach every one of them.
 *
 * A workload leaves blocks in the table for the caller, who checks and frees them.
 */
#ifndef FAULT_WORKLOADS_H
#define FAULT_WORKLOADS_H

#include "blocks.h"

struct workload {
    const char *name;
    void (*run)(struct blocks *blocks);
};

enum { WORKLOADS = 5 };

extern const struct workload workloads[WORKLOADS];

#endif
