/* Sites: the stacks that sampled blocks were allocated from, and what became of the blocks.
 *
 * A site is found by its frames, in a table of hashed chains, and is never removed. Sums count what
 * the samples stand for: bytes that were asked for, and blocks, in parts of one, since few samples
 * stand for a whole number of them.
 *
 * No lock: chains only grow at their heads, by one atomic step, and the sums are atomic.
 */
#ifndef TRACE_SITE_H
#define TRACE_SITE_H

#include "trace/trace.h"

/* The site of such a stack in such modules, made if need be; the one without frames when there is
 * no memory. */
struct site *site_find(const uintptr_t *frames, unsigned count, uint64_t modules);

/* The site made last; the others follow by `next`. */
struct site *site_newest(void);

/* A block died after so many nanoseconds. */
void site_count_lifetime(struct site *site, uint64_t lifetime_ns, uint64_t parts);

#endif
