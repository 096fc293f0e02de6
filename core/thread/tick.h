/* Ticks of the purge: slow paths of any thread look at the clock, begin the ticks, and do the work
 * of one piece by piece (span/purge.h says what that is).
 *
 * The pieces follow the time: a slow path that comes right after another one does one piece, one
 * that comes after a long pause goes on for a part of that pause. So a busy program never waits
 * long, and one that hardly calls malloc any more has soon given back what it freed.
 */
#ifndef THREAD_TICK_H
#define THREAD_TICK_H

#include "base/macros.h"

/* Begins a tick when it is time; no more than once in a tick of the coarse clock a thread. */
void tick_begin(uint64_t now_ms);

/* Goes on with what ticks left to do. */
void tick_work(uint64_t now_ms);

#endif
