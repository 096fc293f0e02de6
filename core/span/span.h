/* Spans: one large block each, a page-exact run from the page heap.
 *
 * Any thread may call anything here; the superslab's span table is written by whoever owns the span
 * (the page heap's lock guards the free pages around it).
 */
#ifndef SPAN_SPAN_H
#define SPAN_SPAN_H

#include "span/superslab.h"

/* Largest alignment that a span can have; above that blocks are big. */
#define SPAN_ALIGNMENT_MAX (REGION_SIZE / 2)

/* Requests up to this are spans. */
#define SPAN_MAX (REGION_SIZE - 1)

/* A block of `size` bytes at a multiple of `alignment`; zeroed if `zero`. NULL: no memory. */
void *span_alloc(size_t size, size_t alignment, bool zero);

/* Usable bytes of the span at `block`. `call` names the API function for the message when `block`
 * is not the start of a live span: that aborts. */
size_t span_size(struct superslab *superslab, const void *block, const char *call);

/* Frees the span at `block`; aborts as span_size does. */
void span_free(struct superslab *superslab, void *block, const char *call);

/* Changes the size in place; false when the pages behind it are in use or `size` is not a span's.
 */
bool span_resize(struct superslab *superslab, void *block, size_t size);

struct span_stats {
    uint64_t allocated; /* spans handed out since the start */
    uint64_t freed;
    uint64_t live_bytes;
};

struct span_stats span_stats(void);

#endif
