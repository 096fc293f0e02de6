/* Schedules: which of the allocator's system calls fail.
 *
 *     once     the Nth call of a kind
 *     ever     the Nth call of a kind and all that follow
 *     random   calls of all kinds, in bursts; which ones follows from a seed alone
 *
 * A failing call is not made: the system refuses before it has changed anything.
 *
 * Thread rule: set while no other thread allocates; the hook itself may be asked by any thread.
 */
#ifndef FAULT_SCHEDULE_H
#define FAULT_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "os/os.h"

/* The kinds that can fail; the last kind of enum os_call, the futex, is not among them: without it
 * no lock works, and no system refuses it. */
#define FAULT_KINDS OS_FUTEX

enum schedule_mode { SCHEDULE_NONE, SCHEDULE_ONCE, SCHEDULE_EVER, SCHEDULE_RANDOM };

struct schedule {
    enum schedule_mode mode;
    enum os_call call; /* of once and ever */
    uint64_t number;   /* once and ever: the Nth call, from 1; random: the seed */
};

extern const char *const schedule_call_names[FAULT_KINDS];

/* From here on calls fail as the schedule, which is not copied, says. */
void schedule_start(const struct schedule *schedule);

/* From here on no call fails. */
void schedule_stop(void);

/* Calls that failed since the start. */
uint64_t schedule_failures(void);

#endif
