/* Big blocks of the hardened preset: each in a mapping of its own between guard pages.
 *
 *     mapping | closed | zeros | block ........................... | closed |
 *                              ^ region.base                       ^ a page's start
 *
 * The block ends where the page does, as far as its alignment allows: a write behind it faults. The
 * rest of its pages is zero, which free checks. From then on nobody can touch the block, and its
 * addresses stay taken while it waits in quarantine. The BigCache keeps none of these blocks, but
 * its parts have their records, and count them while they are live.
 *
 * Any thread; no lock is held across a system call.
 */
#ifndef HARDENED_BIG_H
#define HARDENED_BIG_H

#include "span/big_cache.h"

/* A new block, live and zero; NULL: no memory. */
struct big *big_fenced_make(unsigned part, size_t size, size_t alignment);

/* Ends a block that was just retired; aborts, naming `call`, if somebody wrote beside it. */
void big_fenced_end(struct big *big, const char *call);

/* Resizes the live block, in place or elsewhere; NULL: no memory, and it is as before. Aborts as
 * big_fenced_end does. */
struct big *big_fenced_resize(struct big *big, size_t size);

/* Ends the waiting of all blocks. */
void big_fenced_release(void);

/* Debug walker over the blocks that wait. */
void big_fenced_check(void);

#endif
