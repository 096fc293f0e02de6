/* Sites: the stacks that sampled blocks were allocated from, and sums over these blocks.
 *
 * A site is found by its frames, and the name of the scope that the thread was in, in a table of
 * hashed chains, and is never removed; if there are very many, it is found by its innermost frames
 * alone, without the name. Sums count requested bytes and blocks, as many as the
 * samples stand for; blocks in parts of one, since few samples stand for a whole number.
 *
 * No lock: chains only grow at their heads, by one atomic step, and the sums are atomic.
 */
#ifndef TRACE_SITE_H
#define TRACE_SITE_H

#include "trace/trace.h"

/* The site of the stack in these modules and that scope, whose name is shorter than
 * SCOPE_PATH_BYTES; made if need be. If there is no memory, the site without frames. */
struct site *site_find(
    const uintptr_t *frames, unsigned count, uint64_t modules, const char *scope);

/* The site made last; the others follow by `next`. */
struct site *site_newest(void);

/* Counts the lifetime of blocks that died. */
void site_count_lifetime(struct site *site, uint64_t lifetime_ns, uint64_t parts);

#endif
