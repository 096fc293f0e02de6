/* The kinds of locks, and what happens at them while the option `cycles` is on. */
#ifndef OBSERVE_LOCK_KINDS_H
#define OBSERVE_LOCK_KINDS_H

#include "os/lock.h"

enum lock_kind {
    LOCK_BIN,
    LOCK_TRANSFER,
    LOCK_PAGE_HEAP,
    LOCK_BIG,
    LOCK_METADATA,
    LOCK_REGISTRY,
    LOCK_KINDS
};

extern const char lock_kind_names[LOCK_KINDS][12];

/* Those that a thread waited for are among the acquisitions. */
struct lock_waits {
    uint64_t acquisitions;
    uint64_t waits;
    uint64_t waited_ticks;
};

/* Threads use different copies. Atomic relaxed, any thread; outside of lock_kinds.c nobody but the
 * descriptor looks at them. */
enum { LOCK_KIND_COPIES = 8 };
extern struct lock_waits lock_kind_copies[LOCK_KIND_COPIES][LOCK_KINDS];

/* From the library's constructor. */
void lock_kinds_start(void);

void lock_kinds_collect(enum lock_kind kind, struct lock_waits *waits);

#endif
