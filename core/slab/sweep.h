/* Sweep: what bins give back.
 *
 *  - Empty slabs that a bin keeps for a burst that may come back (bin.h). They go to the page heap
 *    with the tick that finds that nobody needed them since the last one, and before memory is
 *    mapped for anybody.
 *  - Whole free pages inside slabs that are in use. A sweep goes over the emptiest slabs of a bin
 *    and gives such pages back to the system: after a tick that found memory that nobody needed,
 *    piece by piece, or on request.
 *
 * No lock of its own: it works under the locks of bins, which it leaves for each system call.
 */
#ifndef SLAB_SWEEP_H
#define SLAB_SWEEP_H

#include "base/pressure.h"

/* A tick: decides which bins have memory to give back. Arms the purge if one has much more free
 * than after its last sweep, or keeps empty slabs. */
void sweep_tick(enum pressure_tick tick);

/* Goes on with the work that ticks left; true: there was some. */
bool sweep_step(void);

/* Gives empty slabs of all bins to the page heap, the shard's first, until they add up to a
 * superslab. True: there were some. */
bool sweep_empties(unsigned shard);

/* Gives back empty slabs, and up to `bytes` of whole free pages inside the others, the emptiest
 * first; SIZE_MAX: all. Returns bytes. */
size_t sweep_purge(size_t bytes);

#endif
