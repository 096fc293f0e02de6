/* Counts of a lock: how often it is taken, how long it is held, how long threads wait for it, and
 * whether they meet there at all. Only in the measuring library (report/locks.c); in others
 * HAKMEM_MEASURING is 0, and a lock is its word.
 *
 * The counts lie beside the lock's word and are written by its holder, who has that cache line
 * anyway: so counting makes no threads meet. Times are ticks of the processor's clock. A hold ends
 * before its own numbers are written.
 */
#ifndef OS_LOCK_PROFILE_H
#define OS_LOCK_PROFILE_H

#include "base/macros.h"

/* All written by the lock's holder, read by any thread: atomic relaxed, one writer. */
struct lock_profile {
    uint64_t acquisitions;
    uint64_t waits;        /* of these: another thread held the lock */
    uint64_t handovers;    /* of these: the last holder was another thread */
    uint64_t interrupted;  /* of these: held so long that the holder must have been preempted */
    uint64_t waited_ticks; /* in all waits */
    uint64_t held_ticks;   /* in all holds that were not interrupted */
    uint64_t since_ticks;  /* the present hold */
    uint32_t holder;       /* the present or last one's thread id; 0: none yet */
};

#endif
