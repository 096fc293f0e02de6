/* The hold: a thread's cache in the hardened library, with freed blocks that wait (its quarantine)
 * and blocks to hand out next.
 *
 *     free  -> a random place of 64 -> a queue of 64 -> ready -> malloc, which picks one at random
 *                                                       | too many: half of them
 *                                                       v       ^ none: at first one, then twice
 *                                                               | as many each time, up to a half
 *                                                      bins of the first shard
 *
 * So most calls take no lock and no gate, and a block's next owner is hard to foresee. Tiny and mid
 * blocks wait separately, each within a bound on bytes.
 *
 * The thread finds its hold by one load, and marks it busy while it changes it: a signal handler
 * that finds it busy goes to the bins instead. So does a thread that has no hold, for lack of
 * memory or because it is about to end. When the thread ends, its hold stays with the heap, empty.
 * If it was busy then, or if a child of fork lacks its thread, the blocks in it stay allocated.
 *
 * Owner thread only, but for the counters.
 */
#ifndef HARDENED_HOLD_H
#define HARDENED_HOLD_H

#include "base/random.h"
#include "hardened/word.h"
#include "os/identity.h"
#include "thread/heap.h"

enum {
    HOLD_READY = 30,  /* most ready blocks of a class; batches have up to half as many */
    HOLD_PLACES = 64, /* of each quarantine: in the random part, and in the queue */
    HOLD_CLASSES = MID_CLASS_LAST + 1,
    HOLD_BYTES = 512 * 1024 /* that wait in the quarantine of mid blocks */
};

/* A block with its slab, so that no map has to be asked again. */
struct held {
    void *block;
    struct slab *slab;
};

struct ready {
    uint64_t takes; /* atomic relaxed, one writer: blocks handed out; freed */
    uint64_t frees;
    uint16_t count;   /* below `most`, but for a moment */
    uint16_t process; /* the number, its lower half, of the process that took the blocks */
    uint16_t most;    /* fewer for long blocks; 0: no block of the class was used yet */
    uint16_t batch;   /* blocks that come from the bins next */
    uint64_t fetched; /* as `takes`: blocks from the bins, less those sent there */
    struct held blocks[HOLD_READY];
};

_Static_assert((sizeof(struct ready) & (sizeof(struct ready) - 1)) == 0, "found by a shift");

struct hold_quarantine {
    size_t bytes;  /* in use for the mid tier only */
    uint32_t next; /* counts up over the queue: the oldest place */
    struct held random[HOLD_PLACES];
    struct held queue[HOLD_PLACES];
};

struct hold {
    bool busy;
    uint8_t calls_left; /* until the thread looks after the purge */
    uint8_t looks_left; /* further looks in this tick of the clock */
    uint32_t process;   /* the number of the process that has drawn `random` */
    uint64_t random;    /* the state of a generator */
    struct heap *heap;  /* const */
    struct hold_quarantine tiny, mid;
    struct ready ready[HOLD_CLASSES];
};

/* The calling thread's hold; NULL: none. Initial-exec TLS. */
extern __thread struct hold *thread_hold __attribute__((tls_model("initial-exec")));

/* The thread's hold, which is busy until hold_end; NULL: it has none, or it is busy. */
ALWAYS_INLINE struct hold *hold_begin(void)
{
    struct hold *hold = thread_hold;
    if (UNLIKELY(!hold) || UNLIKELY(hold->busy))
        return NULL;
    hold->busy = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return hold;
}

ALWAYS_INLINE void hold_end(struct hold *hold)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    hold->busy = false;
}

/* ---- Calls, while it is busy ----------------------------------------------------------------- */

/* A ready block of the class, at most mid; `block` is NULL if there is none, or only of the
 * parent's of this process, or if it is time to look at the clock. */
ALWAYS_INLINE struct held hold_take(struct hold *hold, unsigned size_class)
{
    struct ready *ready = &hold->ready[size_class];
    uint32_t count = ready->count;
    if (UNLIKELY(--hold->calls_left == 0) || UNLIKELY(!count) ||
        UNLIKELY(ready->process != (uint16_t)identity_process_number()))
        return (struct held){NULL, NULL};
    struct held *place = &ready->blocks[random_below(&hold->random, count)], held = *place;
    *place = ready->blocks[count - 1];
    ready->count = (uint16_t)(count - 1);
    COUNTER_ADD(&ready->takes, 1);
    return held;
}

/* Takes a block where hold_take gave none: gets blocks from the bins, and looks after the purge if
 * it is time. */
SLOW_PATH struct held hold_take_slowly(struct hold *hold, unsigned size_class);

/* The block takes a random place, the block there one of the queue; returns the block that has
 * waited long enough. */
ALWAYS_INLINE struct held hold_wait(
    struct hold *hold, struct hold_quarantine *quarantine, struct held held)
{
    struct held *place = &quarantine->random[random_below(&hold->random, HOLD_PLACES)];
    struct held queued = *place;
    *place = held;
    if (UNLIKELY(!queued.block))
        return queued;
    place = &quarantine->queue[quarantine->next++ % HOLD_PLACES];
    struct held oldest = *place;
    *place = queued;
    return oldest;
}

/* Makes room among the ready blocks of the class: sends the first ones to the bins. */
SLOW_PATH void hold_spill(struct hold *hold, unsigned size_class);

/* Makes a block ready that waits no more, if there is one. */
ALWAYS_INLINE void hold_ready(struct hold *hold, struct held held)
{
    if (UNLIKELY(!held.block))
        return;
    unsigned size_class = held.slab->size_class;
    struct ready *ready = &hold->ready[size_class];
    uint32_t count = ready->count;
    ready->blocks[count] = held;
    ready->count = (uint16_t)(count + 1);
    if (UNLIKELY(count + 1 >= ready->most))
        hold_spill(hold, size_class);
}

/* Takes in a mid block, and passes the excess on. */
void hold_put_mid(struct hold *hold, struct held held);

/* Takes in a block that was freed and is zero. */
ALWAYS_INLINE void hold_put(struct hold *hold, struct held held)
{
    unsigned size_class = held.slab->size_class;
    COUNTER_ADD(&hold->ready[size_class].frees, 1);
    if (size_class > TINY_CLASS_LAST) {
        hold_put_mid(hold, held);
        return;
    }
    hold_ready(hold, hold_wait(hold, &hold->tiny, held));
}

/* ---- Threads --------------------------------------------------------------------------------- */

/* Makes a hold for the thread, which is in the outermost slow path of its own heap, if it has none
 * and there is memory for it. */
void hold_open(struct heap *heap);

/* Debug walker of the heap's hold, if it has one, while its thread does nothing; adds to `held`, by
 * classes below HOLD_CLASSES, how many blocks wait there or are ready. */
void hold_check(const struct heap *heap, unsigned *held);

#endif
