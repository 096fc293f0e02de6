/* Decides which memory may have huge pages, and how far freed memory was used.
 *
 * A huge page for a block of which little is touched wastes memory, and stacks of fibers and ring
 * buffers look like matrices. So huge pages are asked for only as far as earlier blocks were used
 * whole. That is seen when the memory of a freed block is used again: blocks in use and blocks
 * that are just freed are not read, since the program may have closed parts of them, or watch them.
 *
 * A system that gives huge pages unasked ("always") is asked for none where small blocks lie and in
 * big blocks below HUGE_ALONE_MIN, and has its way with longer ones. To any other system nothing is
 * said of memory that needs no huge pages: so it may give smaller folios.
 */
#ifndef SPAN_HUGE_H
#define SPAN_HUGE_H

#include "base/macros.h"

/* True if advice about huge pages may be given, and the system gives them unasked. */
bool huge_is_unasked(void);

/* Asks for no huge pages in fresh memory, if the system would give them unasked. */
void huge_refuse(void *address, size_t size);

/* True if a fresh big block of `size` bytes shall have huge pages; uses trust up. `live_bytes`: of
 * all big blocks. */
bool huge_is_wanted(size_t size, size_t live_bytes);

/* How many of USE_PLACES pages, spread evenly over memory that is mapped and free, are not zero: an
 * estimate. */
unsigned huge_count_written(const char *base, size_t size);

/* Learns from memory that was zero when it was handed out, and of which so many of these places
 * were written to. */
void huge_learn(unsigned written, size_t size);

#endif
