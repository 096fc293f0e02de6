/* What the option `cycles` has counted, for the reports; nothing if that is nothing. */
#ifndef OBSERVE_CYCLES_REPORT_H
#define OBSERVE_CYCLES_REPORT_H

#include "base/text.h"

/* Appends a table, in nanoseconds. */
void cycles_print(struct text *text);

/* Appends the member "cycles" and a comma: ticks, with their rate, and histograms as arrays, of
 * which the last places are left out when they are 0. */
void cycles_json(struct text *text);

/* Nanoseconds in slow calls of one side, and waits for locks of all kinds. */
uint64_t cycles_slow_ns(unsigned side);
void cycles_lock_waits(uint64_t *waits, uint64_t *waited_ns);

#endif
