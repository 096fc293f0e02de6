/* The limits that the system sets to a process: control groups of version 1 and 2, and resource
 * limits.
 *
 * All is read by plain system calls, into the caller's stack. `root` precedes each path: "", except
 * in tests. A limit that is not set, or cannot be read, is SIZE_MAX.
 */
#ifndef OS_LIMITS_H
#define OS_LIMITS_H

#include "base/macros.h"

struct os_limits {
    size_t group_bytes;   /* memory: the least limit of the control group and those around it */
    size_t address_bytes; /* address space, by RLIMIT_AS and RLIMIT_DATA */
    size_t cpus;          /* the least quota of the groups in CPUs, rounded up */
};

void os_limits_read(const char *root, struct os_limits *limits);

/* Memory and address space in use by the process; 0: unknown. */
struct os_footprint {
    size_t resident_bytes, address_bytes;
};

struct os_footprint os_footprint_read(const char *root);

#endif
