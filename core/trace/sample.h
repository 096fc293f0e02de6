/* Samples: some of all blocks, chosen so that each byte has the same chance (due.h), of
 * which it is known who allocated them, when, and what became of them.
 *
 * A short block that is sampled lies in a slab of its shard's own (slab/slab.h), which no class map
 * knows; of a long one the state says so. So its free leaves the hit path by tests that are there
 * anyway. For all else it is a block of the class that it would be of otherwise: usable size,
 * statistics and what realloc does are the same. A block that realloc leaves where it is stays what
 * it is, sampled or not; one that it moves is decided on anew.
 *
 * A sample stands for as many blocks as its chance was one of, and as many times its bytes.
 *
 * Nothing here is called with a lock held. What looks at the stack comes before the heap is
 * entered, and what is told to the log after it is left. Stacks are not taken within one another:
 * what an unwinder allocates is not sampled.
 */
#ifndef TRACE_SAMPLE_H
#define TRACE_SAMPLE_H

#include "slab/slab.h"
#include "span/big.h"
#include "thread/heap.h"
#include "trace/guard.h"
#include "trace/log.h"
#include "trace/trace.h"
#include "trace/unwind.h"

/* See trace.h: the calls of that name. */
void *sample_replace(
    void *block, size_t size, size_t alignment, bool zero, const struct trace_start *start);
void sample_big(struct big *big, size_t size, const struct trace_start *start);
struct sample *sample_decide(size_t size, unsigned size_class, const struct trace_start *start);
void sample_begin(struct sample *sample, void *block, size_t usable);
void sample_drop(struct sample *sample);
size_t sample_size(const void *block, const char *call);
size_t sample_object(const void *address);
void sample_free(void *block, const struct trace_start *start);
void sample_resized(const void *before, void *block, size_t size);
void sample_moves(const void *block);
void sample_died(struct sample *sample);

/* The heap is another thread's from now on. */
void sampler_forget(struct heap *heap);

/* The sample that a live block of any kind is, or NULL. */
struct sample *sample_of(const void *block);

/* Sets the mean distance of samples in bytes; 0: none. To be called outside of allocations, by any
 * thread; where another one is at it, that one goes on with what this one wants, which does not
 * wait. False when there is no memory; then there are none. */
bool sample_set_mean(size_t bytes);

/* A profiler that is attached to the probe `otel_memory:alloc` turns sampling on, with its own mean
 * distance, and when it goes sampling is as the options say. It takes the stacks itself, so that
 * none are taken here. */
void sample_observe(bool comes);
extern bool sample_is_for_observer; /* atomic relaxed, any thread: the mean is that for it */

#endif
