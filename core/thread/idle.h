/* What idle threads cache, and how other threads get at it.
 *
 * A thread that waits keeps its magazines, and no hit path takes a lock by which others could reach
 * into them. But each hit begins with a look into the front of the heap: at the class of a size, or
 * at the bounds of the class map. So another thread *closes* the heap: it makes these words say
 * that no size and no block has a class. Then every later call of the owner misses and comes by
 * heap_enter, where the two meet at the *gate* of the heap, a word that one of them holds at a
 * time.
 *
 * A call of the owner that began before may still be under way: a hit that was preempted, or
 * interrupted by a signal handler that sleeps for hours. There is one at most, since calls do not
 * interrupt each other. It takes the block on top, or puts one above it, and moves `top` by one. So
 * who drains a closed heap takes blocks from the bottom, leaves the one on top, and never writes
 * `top`: it moves the sentinel up.
 *
 *     | NULL | a | b | c | d |            | - | - | - | NULL | d |
 *      begin              top      ->                  begin  top
 *
 * A heap that its owner has *parked* on leaving a slow path (heap.c) has no call under way and is
 * drained wholly.
 *
 * All this needs that each sees what the other wrote before. Between gates that is so; between the
 * closing and the hits it is so after a while, since no processor keeps a store to itself for
 * long: a heap is drained a millisecond after it was closed, or later. Nothing depends on the
 * owner's getting anywhere within that time.
 *
 * The owner may wait at its gate for as long as another thread copies pointers there; others never
 * wait at a gate. Ticks of the purge close and drain (reclaim/), and so does a purge on request.
 */
#ifndef THREAD_IDLE_H
#define THREAD_IDLE_H

#include "thread/heap.h"

/* Sets up the front's size tables and the newest class map, so that calls hit. By the owner, inside
 * its gate. */
void idle_open_front(struct heap *heap);

/* Who is inside the gate; acquire on entry pairs with release on leaving. */
enum { GATE_FREE, GATE_OWNER, GATE_OTHER };

/* The owner, or a signal handler that has interrupted it inside, takes the gate. */
void idle_enter(struct heap *heap);
void idle_leave(struct heap *heap);

/* Makes a heap that others closed or drained what it was, with fewer blocks. Inside the gate. */
void idle_take_back(struct heap *heap);

/* The heap is no thread's own any more, and out of others' reach. */
void idle_disown(struct heap *heap);

/* There is memory to give back, or other threads may go idle with some: slow paths look after it.
 */
bool idle_matters(void);

/* Parks the heap, on leaving the last of its slow paths, if it is time; true when it did. Inside
 * the gate. */
bool idle_park(struct heap *heap);

/* While heaps stay parked, each call takes a slow path: see api/perturb.h. Each thread follows with
 * its next slow path. */
void idle_stay_parked(bool stay);

/* Begins ticks of the purge and does of their work, as the clock says. */
void idle_look_after_purge(struct heap *heap);

/* A tick: all heaps are to be closed, and those to be drained that are closed since the last one.
 * If steps of that one are left, they come first, and the next tick begins anew. */
void idle_tick(void);

/* Does that for some of them; true when there are more. */
bool idle_step(void);

/* Drains all heaps whose owners make no call meanwhile; waits a millisecond or two. */
void idle_purge(void);

/* The heap of a parent's thread, in a child of fork, is to restart with empty magazines. */
void idle_reset(struct heap *heap);

#endif
