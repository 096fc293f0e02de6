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

/* True if the bin has slabs. */
bool sweep_may(unsigned bin);

/* The hand comes by the bin (reclaim/engine.h): empty slabs that it did not need since go to the
 * page heap, and it is decided whether free pages inside others go. `grown`: memory was mapped
 * while much lay free, and all free pages go if the bin has an excess. Arms the purge if it has
 * much more free than after its last sweep, or keeps empty slabs. */
void sweep_look(unsigned bin, bool grown);

/* Gives a part of that back, about `bytes` of pages at most; true: there is more. */
bool sweep_step(unsigned bin, size_t bytes);

/* Gives empty slabs of all bins to the page heap, until they add up to a superslab. True: there
 * were some. */
bool sweep_empties(void);

/* Gives back empty slabs, and up to `bytes` of whole free pages inside the others, the emptiest
 * first; SIZE_MAX: all. Returns bytes. */
size_t sweep_purge(size_t bytes);

#endif
