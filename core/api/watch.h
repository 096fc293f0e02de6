/* Observers that come while the program runs: profilers that are attached to the probe
 * `otel_memory:alloc`, and who asks for a recording from outside.
 *
 * An observer who may write to the memory of the process fills in what it wants and sets `request`
 * of `attachment`, last. The next slow path of malloc, of whichever thread, sees that. What has to
 * be done then may wait for the dynamic linker, and may not be done in the middle of a malloc,
 * whose caller may hold a lock that others want who hold the linker's. So a thread of its own does
 * it, which holds nothing, and ends. Nothing is stopped, and nobody waits.
 *
 *     observer         path, mean_bytes, request
 *     a slow path                                  takes the request, starts the thread
 *     that thread                                  is_recording, said, answers
 */
#ifndef API_WATCH_H
#define API_WATCH_H

#include "thread/heap.h"
#include "trace/trace.h"

extern bool watch_is_observed; /* atomic relaxed, any thread: by the probe */

/* In a slow path, with no lock held: whether there is something to do about observers, or the mean
 * of samples has changed, of which the heap's magazines have to learn. */
ALWAYS_INLINE bool watch_is_called(const struct heap *heap)
{
    return PROBE_IS_ON(otel_memory, alloc) != ATOMIC_LOAD_RELAXED(&watch_is_observed) ||
           UNLIKELY(ATOMIC_LOAD_RELAXED(&attachment.request) != ATTACH_NOTHING) ||
           UNLIKELY(heap->drawn_round != ATOMIC_LOAD_RELAXED(&trace_round));
}

/* Does it. With the heap entered. */
SLOW_PATH void watch_look(struct heap *heap);

#endif
