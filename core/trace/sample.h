/* Samples: some of all blocks, chosen so that each byte has the same chance (due.h). Each records
 * the stack and time of its allocation, and of its end.
 *
 * A short block that is sampled lies in a slab of its shard's own (slab/slab.h), which no class map
 * knows; a long one has a state of its own. So its free leaves the hit path by tests that are there
 * anyway. In all else it counts as a block of its original class: usable size, statistics and
 * realloc are the same. If realloc leaves a block in place, it stays sampled or not; if it moves
 * the block, the chance decides anew.
 *
 * A sample with the chance 1 in N stands for N blocks, and N times its bytes.
 *
 * Nothing here is called with a lock held. Stacks are taken before the heap is entered, and the log
 * is written after it is left. Stacks are not taken within one another: what the C library
 * allocates to say where a stack lies is not sampled.
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

/* Tells the sampler that another thread has taken the heap. */
void sampler_forget(struct heap *heap);

/* The sample of a live block of any kind; NULL: it is none. */
struct sample *sample_of(const void *block);

/* Sets the mean distance of samples in bytes; 0: none. To be called outside of allocations, by any
 * thread. If another thread is setting it, that one sets this mean as well, and this call does not
 * wait. False: there is no memory, and no samples. */
bool sample_set_mean(size_t bytes);

/* A profiler that attaches to the probe `otel_memory:alloc` turns sampling on, with a mean distance
 * for profilers, unless the options have; when it detaches, that ends. It takes the stacks itself,
 * so none are taken here. */
void sample_observe(bool comes);
extern bool sample_is_for_observer; /* atomic relaxed, any thread: the mean is the profiler's */

#endif
