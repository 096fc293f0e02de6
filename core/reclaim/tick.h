/* When free memory goes back to the system; each layer below knows how.
 *
 *  - growth (growth.c): when memory is mapped, as much free memory goes back, so that idle memory
 *    does not add to the resident; but only memory that lay free ever since the last such purge, or
 *    blocks of two tiers that come and go in turns would drive each other out;
 *  - ticks (here): every `purge_delay_ms`, memory that lay free ever since the last tick: all of it
 *    if it is more than `retain_percent` of the memory in use, else half of it;
 *  - everything (everything.c): hakmem_purge and malloc_trim, and when memory runs out.
 *
 * Slow paths of any thread look at the clock, begin the ticks, and do the work of one piece by
 * piece. The pieces follow the time: a slow path that comes right after another one does one piece,
 * one that comes after a long pause goes on for a part of that pause. So a busy program never waits
 * long, and one that hardly calls malloc any more has soon given its free memory back.
 *
 * No lock of its own, as base/pressure.h.
 */
#ifndef RECLAIM_TICK_H
#define RECLAIM_TICK_H

#include "base/pressure.h"

/* Begins a tick when it is time: the BigCache gives its part at once, and the parts that the other
 * layers give in steps are decided. */
enum pressure_tick tick_begin(uint64_t now_ms);

/* A piece of the work that ticks left; true when there may be more. */
bool tick_step(void);

#endif
