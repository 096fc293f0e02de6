/* The counts of the measuring library, for its reports: spans (cycles.h) and locks (locks.h). */
#ifndef REPORT_CYCLES_REPORT_H
#define REPORT_CYCLES_REPORT_H

#include "base/text.h"
#include "hakmem/hakmem.h"

/* Appends tables of both, in nanoseconds. */
void cycles_print(struct text *text);

/* Appends the members "cycles", in ticks, with their rate, and histograms as arrays without
 * trailing zeros, "lock_profile_cost_ps" and "locks", and a comma. */
void cycles_json(struct text *text);

/* Fills in the sums of both. */
void cycles_sum(struct hakmem_stats *total);

#endif
