/* All walkers in one call, for tests: every list, count and map that the code relies on.
 *
 * In builds without HAKMEM_DEBUG they find nothing, and no product has them.
 */
#ifndef CHECKS_WALK_H
#define CHECKS_WALK_H

/* The structures that are sound whenever their locks are open, while other threads work. */
void walk_shared(void);

/* These, the two maps, the heaps of all threads, and bins and BigCache, whose counts differ while a
 * thread works on them outside the lock. No other thread is in a call. */
void walk_all(void);

#endif
