/* The engine by which free memory goes back to the system.
 *
 * A *giver* is a kind of place where memory lies that nobody may need: a row of one table, from the
 * top down, since each gives to those below. What one has to give leaves it in *steps*, each of
 * which holds one lock at most and purges some 16 pages or moves some 128 blocks.
 *
 * A *hand* goes round all places. Where it comes by, it looks: what has been free ever since it
 * last did is not needed, and goes by steps, before the hand goes on. A round begins
 * `purge_delay_ms` after the last one began, or later, so each place was watched for at least as
 * long.
 *
 *     | heaps | pool | caches 0, 1, 2 .. | bins 0, 1, 2 .. | pages |
 *                            ^ hand
 *
 * The steps are driven
 *  - by slow paths of any thread, for a part of the time since the last one that worked, some 20
 *    microseconds; only after a long pause, when the program hardly calls malloc, longer;
 *  - by a need, from a row on, until it is met: a limit (limit.c), memory that grows (growth.c), a
 *    request or no memory (reclaim_everything).
 *
 * One thread at a time moves the hand, as the word pressure_engine says; others pass by. It is no
 * lock: nobody waits for it.
 */
#ifndef RECLAIM_ENGINE_H
#define RECLAIM_ENGINE_H

#include "base/pressure.h"

/* The rows of the table. */
enum giver {
    GIVER_HEAPS,     /* magazines of idle threads */
    GIVER_POOL,      /* those of heaps without an owner; free blocks kept for samples */
    GIVER_TRANSFERS, /* transfer caches */
    GIVER_BINS,      /* empty slabs, and free pages in others */
    GIVER_PAGES,     /* the BigCache, and free runs of the page heap */
    GIVERS
};

/* Gives back until `bytes` have gone, SIZE_MAX: all, from this row on; returns bytes. */
size_t engine_give(enum giver first, size_t bytes);

/* What a round gives back: memory that lay unused since the last one; or, if memory was mapped
 * while much lay free, all free pages inside the slabs of classes with an excess. */
enum round { ROUND_NONE, ROUND_IDLE, ROUND_GROWTH };

/* Begins a round if there is a reason to; NONE: the hand is on its way, or it is no time. For one
 * thread at a time, as reclaim_tick makes sure. */
enum round engine_begin(uint64_t now_ms);

/* Does one step, which purges about `bytes` at most; false: the hand is at the end of its round.
 * For the same thread. */
bool engine_step(size_t bytes);

/* Begins a round if there is a reason to, or goes on with one, for so long, unless another thread
 * does. Returns for how long nobody should work then, nanoseconds. */
uint64_t engine_work(uint64_t now_ms, uint64_t budget_ns);

/* How long until there is a reason to work, milliseconds. */
uint64_t engine_wait_ms(uint64_t now_ms);

/* Called without locks, on request or when memory runs out: gives back all free memory, but for the
 * caches of the calling thread and the last block in each of the magazines of running ones, for
 * which it may wait some milliseconds; returns bytes. */
size_t reclaim_everything(void);

/* True if the system would map `bytes` at this moment. */
bool reclaim_has_room(size_t bytes);

/* False if the system would refuse `bytes` even after everything is given back: then trying again
 * is in vain. */
bool reclaim_may_make_room(size_t bytes);

struct heap;

/* heap_enter; if there is no memory for a heap, what lies free goes first. */
struct heap *reclaim_enter(void);

/* For a thread that found no memory for `bytes`, neither in the system nor in free lists. With
 * `effort` 0 what is cached goes to slabs and page heap; with 1 everything goes to the system,
 * which may take long. False: trying again is in vain. With the heap entered. */
bool reclaim_for(struct heap *heap, size_t bytes, unsigned effort);

#endif
