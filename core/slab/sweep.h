/* Sweep: gives back memory of bins.
 *
 *  - Empty slabs that a bin keeps for a recurring burst (bin.h). They go to the page heap with the
 *    first tick that finds them unneeded since the last one, and before memory is mapped.
 *  - Whole free pages inside slabs that are in use. A sweep goes over the emptiest slabs of a bin
 *    and gives such pages back to the system: piece by piece after a tick that found unneeded
 *    memory, or on request.
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
