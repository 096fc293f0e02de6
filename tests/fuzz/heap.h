/* The target `heap`: an input is a sequence of calls of the allocation API by three threads.
 *
 *     | header, 4 bytes | record, 4 bytes | record | ...
 *
 *     header   CPUs, address space, where mappings lie, seed of what blocks contain, fences
 *     record   step and repetitions | slot | size | fine
 *
 * The options are those of the environment: in the hardened preset the same input is another one.
 *
 *     heap_steps    what a record means (steps)
 *     heap_crew     the threads, one of which runs at a time
 *     heap_check    what must hold between two calls, and when all is over
 *     perform, model, shadow, content, entries of tests/stress: a call and what it must do
 *
 * Thread rule: everything is touched by whose turn it is; semaphores hand the turn over. */
#ifndef FUZZ_HEAP_H
#define FUZZ_HEAP_H

#include <pthread.h>
#include <semaphore.h>

#include "fuzz.h"
#include "perform.h"

enum { ACTORS = 3, SLOTS = 1024, RECORD_BYTES = 4 };

/* A thread, or the place for one. */
struct actor {
    struct seat seat;
    pthread_t thread;
    sem_t turn;
    bool exists;
    bool leaves;         /* the thread ends when it has given its turn back */
    unsigned late_first; /* slots that it uses on its way out, after its heap was released */
    unsigned late_count;
    unsigned late_rounds; /* of its destructors so far */
};

/* What the threads of an input share. */
struct crew {
    struct run run;
    struct block slots[SLOTS];
    struct actor actors[ACTORS];
    struct input input;
    bool is_sized; /* the last record named a size for the next one */
    size_t named_size;
    unsigned current;  /* whose turn it is, or will be next */
    uint64_t records;  /* read so far */
    size_t bytes_left; /* that may still be allocated: touching many pages takes the time of many
                        * inputs that touch few */
};

extern struct crew crew;

/* heap_steps.c: runs records until the input ends or the turn changes. */
void steps_run(struct actor *actor);

/* Uses up one slot: frees the block in it, or allocates a small one. */
void steps_use_late(struct actor *actor, unsigned slot);

/* heap_crew.c */
void crew_prepare(void);           /* once */
void crew_act(struct input input); /* a whole input */

/* heap_check.c */
void check_invariants(void); /* the walkers of the core, and its count of live blocks */

#endif
