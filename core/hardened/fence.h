/* Fences: guard pages, which nobody can touch, around and between the blocks of the hardened
 * library, and in place of freed ones.
 *
 *     closed    | untouchable ............................ |    no memory
 *     opened    | untouchable | reads as zero | untouchable |
 *
 * If the system has marks for that in its page tables (os_guard), they cost no mapping, and there
 * may be any number. If not, or if memory is locked, the range has no rights, which splits
 * mappings: a process has 65,530, and all fences together take a quarter. Beyond that, or if the
 * system refuses, there is no fence: then a closed range reads as zero when it is opened.
 *
 * No lock: the owner of the range owns its fence.
 */
#ifndef HARDENED_FENCE_H
#define HARDENED_FENCE_H

#include "base/macros.h"

/* How a range is closed: not, by marks, by rights. */
enum fence { FENCE_NONE, FENCE_MARKS, FENCE_RIGHTS };

/* To be called once, before the first fence. Reads the limit of mappings, a file: later a filter of
 * system calls may kill for that. */
void fence_prepare(void);

/* Closes whole pages and returns the method used; FENCE_NONE: nothing has changed. `mappings`: how
 * many extra mappings opening ranges inside may cost. */
enum fence fence_start(void *address, size_t size, unsigned mappings);

/* Gives back what fence_start took for a range that is unmapped. */
void fence_end(enum fence fence, unsigned mappings);

/* Opens pages of a closed range, which then read as zero. False: the system refuses, and they stay
 * closed. */
bool fence_open(enum fence fence, void *address, size_t size);

/* Closes pages; their memory goes back. False: they are still open, and zero, as where a library
 * watches what goes. */
bool fence_close(enum fence fence, void *address, size_t size);

/* Closes a range of which some pages may be closed already. False: the others are unchanged. */
bool fence_close_again(enum fence fence, void *address, size_t size);

#endif
