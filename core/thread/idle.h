/* Closing and draining: how other threads take back the blocks that idle threads cache.
 *
 * A waiting thread keeps its magazines, and hit paths take no lock that would let others reach into
 * them. But each hit first reads the front of the heap: the class of a size, or the bounds of the
 * class map. So another thread *closes* the heap: it overwrites these words so that no size and no
 * block has a class. Then every later call of the owner misses and goes through heap_enter, where
 * the two meet at the *gate* of the heap, a word that one of them holds at a time.
 *
 * A call of the owner that began before may still be under way: a hit that was preempted, or
 * interrupted by a signal handler that sleeps for hours. There is one at most, since calls do not
 * interrupt each other. It takes the block on top, or puts one above it, and moves `top` by one. So
 * a thread that drains a closed heap takes blocks from the bottom, leaves the one on top, and never
 * writes `top`: it moves the sentinel up.
 *
 *     | NULL | a | b | c | d |            | - | - | - | NULL | d |
 *      begin              top      ->                  begin  top
 *
 * If the owner has *parked* the heap on leaving a slow path (heap.c), no call is under way, and the
 * heap is drained wholly.
 *
 * Each thread has to see the other's earlier writes. The gate orders them, but not the closing and
 * the hits: a heap is drained SETTLE_NS after it was closed, or later, since no processor keeps a
 * store to itself for that long. The owner need not make progress within that time.
 *
 * The owner may wait at its gate for as long as another thread copies pointers there; others never
 * wait at a gate. Ticks of the purge close and drain (reclaim/), and so does a purge on request.
 */
#ifndef THREAD_IDLE_H
#define THREAD_IDLE_H

#include "thread/heap.h"

/* Sets up the front's size tables and the newest class map, so that calls hit. For the owner,
 * inside its gate. */
void idle_open_front(struct heap *heap);

/* The holder of the gate; acquire on entry pairs with release on leaving. */
enum { GATE_FREE, GATE_OWNER, GATE_OTHER };

/* The owner, or a signal handler that has interrupted it inside, takes the gate. */
void idle_enter(struct heap *heap);
void idle_leave(struct heap *heap);

/* Undoes what others did to a closed or drained heap, which then has fewer blocks. Inside the gate.
 */
void idle_take_back(struct heap *heap);

/* Takes the heap out of its owner's hands and of others' reach. */
void idle_disown(struct heap *heap);

/* True: slow paths have to look after the purge, since memory is to go back, or other threads may
 * go idle with some. */
bool idle_matters(void);

/* When the outermost slow path leaves the heap: parks it if it is time; true: it did. Inside the
 * gate. */
bool idle_park(struct heap *heap);

/* While heaps stay parked, each call takes a slow path: see api/perturb.h. Threads follow with
 * their next slow path. */
void idle_stay_parked(bool stay);

/* Begins ticks of the purge, and does part of their work, by the clock. */
void idle_look_after_purge(struct heap *heap);

/* Looks after the purge in free, where a library watches what goes: see os_is_watched. */
void idle_look_in_free(struct heap *heap);

/* The hand comes by (reclaim/engine.h): steps will close all heaps, and drain those that were
 * closed when it last did. */
void idle_look(void);

/* Closes or drains some heaps; true: there are more. */
bool idle_step(void);

/* Drains all heaps whose owners make no call meanwhile; waits a millisecond or two for those that
 * it closes, unless that was in vain just before. */
void idle_purge(void);

/* In a child of fork: prepares the heap of a parent's thread to restart with empty magazines. */
void idle_reset(struct heap *heap);

#endif
