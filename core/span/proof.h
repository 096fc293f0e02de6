/* Learns whether the program uses big blocks whole, or in small part.
 *
 * A huge page for a block of which little is touched wastes memory, and stacks of fibers and ring
 * buffers look like matrices. So blocks are trusted to be used whole only as far as earlier ones
 * were, which is checked when these are freed.
 */
#ifndef SPAN_PROOF_H
#define SPAN_PROOF_H

#include "base/macros.h"

/* True if the memory, all zero once, seems to have been written to everywhere: a guess by a few
 * pages. */
bool proof_is_dense(const char *base, size_t size);

/* Learns from memory that was all zero when it was handed out, and is no longer used. */
void proof_learn(const char *base, size_t size);

/* True if `size` bytes may be trusted; proof_take also takes them out of the trusted bytes. */
bool proof_holds(size_t size);
bool proof_take(size_t size);

#endif
