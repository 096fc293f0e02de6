/* What experience says about how big blocks are used: whole, or in small part.
 *
 * A huge page for a block of which little is touched wastes its memory, and nobody can tell before:
 * stacks of fibers and ring buffers look like matrices. So memory is trusted to be used whole only
 * as far as others like it were, which is seen when they are freed.
 */
#ifndef SPAN_PROOF_H
#define SPAN_PROOF_H

#include "base/macros.h"

/* True when the memory, all zero once, seems to have been written to everywhere. Looks at few
 * pages: this is no more than a guess. */
bool proof_is_dense(const char *base, size_t size);

/* Learns from memory that was all zero when it was handed out, and is no longer used. */
void proof_learn(const char *base, size_t size);

/* True while so many bytes may be trusted; and takes them out of what is trusted. */
bool proof_holds(size_t size);
bool proof_take(size_t size);

#endif
