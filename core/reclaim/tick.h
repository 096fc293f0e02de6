/* Decides when free memory goes back to the system; the layers below give it back.
 *
 *  - growth (growth.c): when memory is mapped, as much free memory goes back, so that resident
 *    memory does not grow beside idle memory; but, unless much is mapped at once, only memory that
 *    lay free ever since the last such purge: else blocks of two tiers that come and go in turns
 *    would drive each other out;
 *  - pages that are taken (growth.c): as many free ones go back, but no more than PAID_A_MS for
 *    each millisecond;
 *  - ticks (here): every `purge_delay_ms`, memory that lay free ever since the last tick: all of it
 *    if it is more than `retain_percent` of the memory in use, else half of it;
 *  - everything (everything.c): on hakmem_purge and malloc_trim, and when memory runs out.
 *
 * Slow paths of any thread look at the clock, begin the ticks, and do the work of one piece by
 * piece. A slow path right after another one does one piece; one after a long pause works for a
 * part of that pause. So a busy program never waits long, and one that hardly calls malloc any more
 * soon gives its free memory back.
 *
 * No lock of its own, as base/pressure.h.
 */
#ifndef RECLAIM_TICK_H
#define RECLAIM_TICK_H

#include "base/pressure.h"

/* Begins a tick if it is time, and returns its purpose. The BigCache and the pool of heaps give
 * their part at once; the parts of the other layers, which go in steps, are fixed. */
enum pressure_tick tick_begin(uint64_t now_ms);

/* Does a piece of the work that ticks left; true: there may be more. */
bool tick_step(void);

#endif
