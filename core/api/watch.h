/* Observers that come while the program runs: profilers that attach to the probe
 * `otel_memory:alloc`, and outside processes that ask for a recording, or for free memory.
 *
 * An observer with write access to the memory of the process fills in its request in `attachment`,
 * and `request` last. The next slow path of malloc, in any thread, sees that. The answer may wait
 * for the dynamic linker, so it must not be given within a malloc, whose caller may hold a lock
 * that the holder of the linker's lock waits for. So a new thread, which holds no lock, gives it,
 * and ends. Nothing is stopped, and no thread waits.
 *
 *     observer         path, mean_bytes, request
 *     a slow path                                  takes the request, starts the thread
 *     that thread                                  is_recording, said, answers
 *
 * If all threads sleep, nobody comes by. Then the observer may stop one of them in a system call
 * and let it call watch_answer_asleep, on a stack that it has mapped for that.
 */
#ifndef API_WATCH_H
#define API_WATCH_H

#include "thread/heap.h"
#include "trace/trace.h"

extern bool watch_is_observed; /* atomic relaxed, any thread: by the probe */

/* In a slow path, with no lock held: whether an observer has come, gone or made a request, or the
 * mean of samples has changed, so that the heap's magazines have to draw anew. */
ALWAYS_INLINE bool watch_is_called(const struct heap *heap)
{
    return PROBE_IS_ON(otel_memory, alloc) != ATOMIC_LOAD_RELAXED(&watch_is_observed) ||
           UNLIKELY(ATOMIC_LOAD_RELAXED(&attachment.request) != ATTACH_NOTHING) ||
           UNLIKELY(heap->drawn_round != ATOMIC_LOAD_RELAXED(&trace_round));
}

/* Acts on that. With the heap entered. */
SLOW_PATH void watch_look(struct heap *heap);

/* Takes the request as a slow path does, but in a thread that an observer has taken out of a system
 * call, and without the heap that the thread may be in the middle of a hit in. False: the thread
 * has entered its heap, or holds a lock, or is none that the C library knows and could start
 * another one from, and nothing has happened. */
bool watch_answer_asleep(void);

#endif
