/* The model checker: runs the threads of a scenario under every schedule that matters.
 *
 * The checked code is compiled with -fsanitize=thread, but linked with this engine in place of the
 * sanitizer's runtime: so the compiler tells the engine of each access to memory, plain or atomic,
 * with the order that the source names. The threads are fibers of one system thread.
 *
 * Time goes in *steps*: a step is one visible operation (atomic access, lock, futex, mapping) and
 * the plain code behind it. Before each step any thread whose operation can proceed may be chosen,
 * and a load may return any store that C11 lets it see. All choices are explored, depth first, but
 * for those that only swap neighbouring steps which do not conflict (search.c), and for stores of a
 * value that an older store offers as well (atomic.c). Plain accesses are no steps: two of them
 * that conflict and are not ordered by synchronisation are a data race, which is a failure in
 * whatever order they come (shadow.c).
 *
 * One system thread; nothing here is instrumented.
 */
#ifndef MODEL_ENGINE_H
#define MODEL_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/model.h"

/* The main thread runs `prepare` and `finish` of a scenario. */
enum { MAIN = THREADS_MAX, CLOCKS };

/* By thread: how much of what it did is known. */
struct clock {
    uint32_t at[CLOCKS];
};

static inline void clock_join(struct clock *clock, const struct clock *other)
{
    for (int i = 0; i < CLOCKS; i++)
        if (clock->at[i] < other->at[i])
            clock->at[i] = other->at[i];
}

/* ---- fiber.c --------------------------------------------------------------------------------- */

extern int current; /* the running thread */

void fiber_init(void);
void fiber_start(int thread, void (*body)(void)); /* runs it until it switches back */
void fiber_switch(int thread);

/* True when the address is on the stack of the running thread. On another's it is a failure. */
bool fiber_own_memory(const void *address);

/* ---- search.c -------------------------------------------------------------------------------- */

enum op_kind { OP_NONE, OP_READ, OP_WRITE, OP_LOCK, OP_FORK };

struct op {
    enum op_kind kind;
    const void *object; /* what it may conflict over */
    const char *name;
    const void *code;
};

extern bool exploring;  /* an execution is under way; otherwise accesses are just carried out */
extern bool concurrent; /* the threads of the scenario are running */

/* Announces the thread's next step; returns when it is chosen. */
void search_step(struct op op);

/* One of `count` outcomes of the present step. */
unsigned search_choose(unsigned count);

/* The same, where all but the first are values that were overwritten. */
unsigned search_choose_store(unsigned count);

/* Adds a value to the report of the present step. */
void search_note(uint64_t value);

void search_lock_released(const void *lock);
void search_sleep(const void *object, const void *code);
void search_wake_one(const void *object);

/* Ends the execution if its scenario expects an abort; else returns. */
void search_abort(void);

/* The load under way is the one that model_yield waits for. */
bool search_takes_news(void);

/* ---- shadow.c -------------------------------------------------------------------------------- */

enum range_event { RANGE_MAPPED, RANGE_PURGED, RANGE_UNMAPPED };

void shadow_start(void);
uint32_t shadow_execution(void); /* which one it is, from 1 */
void shadow_end(void);           /* puts the memory back to what it was at the start */

struct clock *shadow_clock(void); /* of the running thread */
void shadow_tick(void);
void shadow_join(int thread); /* as pthread_join does */
void shadow_settle(void);     /* all threads know what any of them did so far */

void shadow_access(const void *address, size_t size, bool write, bool atomic, const void *code);

/* What the system does to whole ranges; counts as a write. */
void shadow_range(void *address, size_t size, enum range_event event, const void *code);

/* Where atomic.c keeps the history of the word. */
struct location **shadow_location(const void *address);

/* Plain writes of the bytes have been taken back. */
void shadow_rewritten(const void *address, size_t size);

/* ---- undo.c ---------------------------------------------------------------------------------- */

void undo_begin(int thread);                    /* forgets what it wrote before */
void undo_record(void *address, size_t size);   /* the running thread is about to write there */
unsigned undo_places(int thread);               /* between its writes, to which fork can go back */
void undo_to_place(int thread, unsigned place); /* 0: after all of them */

/* ---- atomic.c -------------------------------------------------------------------------------- */

/* Called when a plain write hits a word with a history. */
void atomic_written_plainly(struct location *location);
void atomic_forget_all(void);

/* Words of 1 to 8 bytes; `order` is one of __ATOMIC_*. */
uint64_t atomic_load(void *address, unsigned size, int order, const void *code);
void atomic_store(void *address, unsigned size, uint64_t value, int order, const void *code);

typedef uint64_t (*atomic_change)(uint64_t before, uint64_t operand);

/* Returns the value before. A counter is no step: additions commute and nobody decides by them. */
uint64_t atomic_modify(
    void *address, unsigned size, atomic_change change, uint64_t operand, int order, bool counter,
    const void *code);
bool atomic_compare_exchange(
    void *address, unsigned size, uint64_t *expected, uint64_t desired, int order, int fail_order,
    const void *code);

/* The newest value, as the kernel sees it; the thread has seen it then, too. */
uint64_t atomic_newest(void *address, unsigned size);

/* True unless the thread has made or read the newest store. */
bool atomic_has_news(const void *address, int thread);

/* ---- system.c -------------------------------------------------------------------------------- */

void system_init(void);
void system_start(void);
void system_thread_starts(int thread);
void system_fork(int thread); /* gives it a new id, and wipes what fork wipes */

/* By thread. */
extern unsigned system_locks_held[CLOCKS];

#endif
