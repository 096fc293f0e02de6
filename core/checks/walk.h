/* All walkers in one call, for tests: every list, count and map that the code relies on.
 *
 * In builds without HAKMEM_DEBUG they find nothing, and no product has them.
 */
#ifndef CHECKS_WALK_H
#define CHECKS_WALK_H

/* What is sound whenever its lock is open, whatever other threads do meanwhile. */
void walk_shared(void);

/* That, the two maps, the heaps of all threads, and what counts blocks differently while somebody
 * works on them outside the lock: bins and BigCache. No other thread is in a call. */
void walk_all(void);

#endif
