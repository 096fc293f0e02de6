/* Samples: some of all blocks, chosen so that each byte has the same chance (thread/due.h), of
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

#include "base/probe.h"
#include "slab/slab.h"
#include "span/big.h"
#include "thread/due.h"
#include "thread/heap.h"
#include "trace/attach.h"
#include "trace/guard.h"
#include "trace/log.h"
#include "trace/unwind.h"

/* Of a live sampled block. Whoever has the block has this. */
struct sample {
    struct site *site;
    uint64_t requested_bytes;
    uint64_t parts;    /* what it stands for: blocks, times SITE_PARTS */
    uint64_t birth_ns; /* of os_clock_ns */
    log_handle log;
    uint32_t thread;    /* the system's id of who allocated it */
    uint8_t size_class; /* that the block counts as; CLASS_NONE: a big one */
};

/* Sets the mean distance of samples in bytes; 0: none. To be called outside of allocations, by any
 * thread; where another one is at it, that one goes on with what this one wants, which does not
 * wait. False when there is no memory; then there are none. */
bool sample_set_mean(size_t bytes);

/* A profiler that is attached to the probe `otel_memory:alloc` turns sampling on, with its own mean
 * distance, and when it goes sampling is as the options say. It takes the stacks itself, so that
 * none are taken here. Asked for in slow paths of malloc, with the heap entered; then the heap's
 * magazines also learn of a mean that another thread has changed, and who asks for a recording from
 * outside (attach.h) is heard. */
extern bool sample_is_observed;     /* atomic relaxed, any thread */
extern bool sample_is_for_observer; /* the same: the mean is that for the observer */
SLOW_PATH void sample_look_around(struct heap *heap);

ALWAYS_INLINE bool sample_should_look(const struct heap *heap)
{
    return PROBE_IS_ON(otel_memory, alloc) != ATOMIC_LOAD_RELAXED(&sample_is_observed) ||
           attach_is_asked() || UNLIKELY(heap->drawn_round != ATOMIC_LOAD_RELAXED(&due_round));
}

/* The calling thread's last pop asked for a sample (heap->sample_class): a block that is one, in
 * place of `block`, which goes back; or `block`, when that cannot be. */
void *sample_replace(
    void *block, size_t size, size_t alignment, bool zero, const struct unwind_start *start);

/* For blocks that are found otherwise than by pops that are due: decides whether one of the class,
 * CLASS_NONE: a big one, will be a sample; NULL: it will not. What it returns goes to sample_begin
 * with the block, or to sample_drop where there is none. */
struct sample *sample_decide(size_t size, unsigned size_class, const struct unwind_start *start);
void sample_begin(struct sample *sample, void *block, size_t usable);
void sample_drop(struct sample *sample);

/* Decides whether a big block that was just allocated is a sample. */
void sample_big(struct big *big, size_t size, const struct unwind_start *start);

/* The sample that the block of a sampled slab is; aborts when that is free, naming `call`. */
struct sample *sample_of(struct slab *slab, const void *block, const char *call);

/* Frees the block of a sampled slab; aborts as that. `heap`: entered, NULL when there is none. */
struct sample *sample_free(struct heap *heap, struct slab *slab, void *block);

/* The site of the caller's stack; NULL: it cannot be found now. */
struct site *sample_site(const struct unwind_start *start);

/* The same as sample_free for a guarded block, which was freed from there. */
struct sample *sample_free_guarded(
    struct heap *heap, struct guard *guard, void *block, const struct site *freed);

/* The sample that a big block was which is about to be freed, or NULL. */
struct sample *sample_free_big(struct big *big, const void *block);

/* Tells what has become of it, after the heap was left. */
void sample_bury(struct sample *sample);

/* The block has another size, and, if it is a big one, perhaps another address. */
void sample_resize(struct sample *sample, void *before, void *block, size_t size);

/* What is freed meanwhile by this thread was moved by realloc. */
void sample_moves(bool moves);

#endif
