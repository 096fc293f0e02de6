/* The thread heap: a thread's magazines, and entry to the slow paths.
 *
 * The memory that hit paths and slow paths of magazines touch is the heap's area (magazine.h).
 * Fields that others read are in a separate record, so that the area of an unused heap can go back
 * to the system (registry.h).
 *
 * A thread enters its heap for each slow path and leaves it after that. Its first call makes or
 * adopts a heap, its exit gives it back; in between, other threads may close and drain it (idle.h).
 *
 * Fields are touched by the owner thread only, unless they say otherwise.
 */
#ifndef THREAD_HEAP_H
#define THREAD_HEAP_H

#include "os/lock.h"
#include "thread/magazine.h"

struct heap_area {
    struct heap_front front;
    struct magazine magazine[CLASS_COUNT - 1]; /* see magazine_of */
};

_Static_assert(HEAP_SLOTS <= UINT16_MAX, "slot indices fit their fields");

/* How far others may reach into a heap (thread/idle.h):
 *
 *                    the owner leaves a slow path, and it is time
 *     HEAP_OPEN ---------------------------------------------------> HEAP_PARKED
 *         |  ^                                                           |
 *         |  |  the owner enters a slow path, as its next call has to    |
 *         |  '-----------------------------------------+-----------------'
 *         |  another thread, in a tick                 |
 *         '--------------------------------------> HEAP_CLOSED
 *
 * HEAP_APART: no thread keeps the heap: one has borrowed it for a call, or it is in the pool. */
enum heap_state { HEAP_APART, HEAP_OPEN, HEAP_PARKED, HEAP_CLOSED };

/* How much others took out since the owner's last slow path: DRAINED_ALL, all that they may take;
 * then the heap counts in registry.idle. */
enum heap_drained { DRAINED_NOT, DRAINED_SOME, DRAINED_ALL };

/* What became of blocks that realloc moved since they became shorter, for api/resize.c. */
struct shrinks {
    const void *watched; /* one such block, which stands for all; NULL: none */
    size_t usable;       /* its usable bytes before */
    uint32_t since;      /* how many have moved after it */
    uint32_t spared;     /* how many of the next stay where they are */
};

/* No other object is on its cache lines: its owner writes to it in each slow path. */
struct heap {
    struct heap_area *area; /* const */
    uint8_t depth;          /* slow paths entered; not 0 when a signal handler interrupts one */
    int cancel_type;        /* of the thread when it entered the outermost */
    uint64_t owner;         /* atomic, any thread: identity of the owner, 0 in the pool */
    int owner_process;      /* atomic relaxed, any thread: its process id, when it took the heap */
    uint32_t gate;          /* atomic, any thread: see thread/idle.h */
    uint8_t state;          /* gate: an enum heap_state; atomic for fork, as `drained` */
    uint8_t drained;        /* gate: an enum heap_drained */
    uint16_t owner_visits;  /* gate: slow paths of the owner that found blocks taken out; wraps */
    uint64_t closed_ns;     /* gate: when it was closed */
    uint8_t shard;          /* const */
    bool bare; /* atomic relaxed, written by the thread that took it: the area is all zero */
    uint16_t slow_calls; /* since the last maintenance */
    uint16_t parks_left; /* in the clock tick `parked_ms`: see PARKS_MAX */
    uint64_t parked_ms;
    uint64_t random;            /* the state of a generator, for trace/ */
    uint8_t sample_class;       /* of the block just popped, if it is to be sampled */
    struct sampler *sampler;    /* the thread's state in trace/; NULL: none yet */
    void *signal_stack;         /* of trace/signals.h; perhaps the last owner's */
    struct hold *hold;          /* of hardened/hold.h; atomic, any thread reads its counters */
    uint8_t drawn_round;        /* trace_round at the last drawing for all magazines */
    uint64_t reallocs_in_place; /* atomic relaxed, one writer */
    struct shrinks shrinks;
    uint16_t next_slot;               /* first slot never used by a range */
    uint16_t free_range[RANGE_KINDS]; /* free slot ranges, linked through their first slot */
    size_t allowed_bytes;             /* the magazines of blocks above 1 KiB may hold so many */
    bool wants_room;        /* since the last maintenance the allowance stopped one of these */
    struct heap *next;      /* registry: const once linked */
    struct heap *next_free; /* registry lock */
    uint8_t warm_ticks;     /* registry lock: ticks of the purge in the warm pool */
} __attribute__((aligned(64)));

/* The record of a magazine. The records of twins that the heap's shard uses come first, so that
 * they share a page with other small classes. */
ALWAYS_INLINE struct magazine *magazine_of(const struct heap *heap, unsigned size_class)
{
    unsigned place = size_class;
    if (heap->shard % 2 && size_class <= TWINS)
        place = size_class + SIZE_COUNT;
    else if (heap->shard % 2 && size_class > SIZE_COUNT)
        place = size_class - SIZE_COUNT;
    return &heap->area->magazine[place - 1];
}

/* The front of the calling thread's heap; of a static one, empty and full in all classes, before
 * the thread's first call, after its heap was released, and while it is parked. Initial-exec TLS:
 * one load by a constant offset. */
extern __thread struct heap_front *thread_heap __attribute__((tls_model("initial-exec")));

/* To be called first in a thread of os/thread.h, whose variables are zero: it has no heap. */
void heap_begin_bare_thread(void);

/* The calling thread's heap; NULL: it has none. */
struct heap *heap_of_thread(void);

/* Enters the calling thread's heap for a slow path, made or adopted if the thread has none yet;
 * NULL: no memory is left. Puts off cancellation of the thread until heap_leave, so that it cannot
 * die with a lock held. After the thread's heap was released (late in its exit) a pooled heap is
 * borrowed for each of a few calls. */
struct heap *heap_enter(void);
void heap_leave(struct heap *heap);

/* Releases the calling thread's heap as its exit would, and lets it start afresh. */
void heap_forget(void);

/* Calls `call`, with the calling thread's heap and scopes out of its sight: the thread may have
 * been stopped in the middle of a hit. Allocations borrow a heap. */
void heap_set_aside(void (*call)(void));

/* Called while the dynamic linker still relocates, by the resolver in override/early.c: then the
 * thread-local variables are zero, and get their first values later. The heap that the thread takes
 * before that is kept for it until heap_end_early, in the constructor. */
void heap_start_early(void);
void heap_end_early(void);

/* Before fork: waits until no other thread is initialising the allocator. */
void heap_prepare_fork(void);

/* In a new process, in which no thread has a heap yet. The forking thread, which has the id `now`
 * instead of `before`, keeps its heap, which counts again when it is entered. Heaps of threads that
 * do not exist here are left behind, and found one by one by threads that need one. Blocks that
 * these cached stay allocated: their magazines may have been in the middle of a change. */
void heap_begin_process(uint32_t before, uint32_t now);

#endif
