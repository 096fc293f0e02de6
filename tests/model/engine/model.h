/* What scenarios are written with. */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum { THREADS_MAX = 4 };

struct scenario {
    const char *name;
    const char *about;
    void (*prepare)(void);             /* once: makes the state that each execution starts from */
    void (*thread[THREADS_MAX])(void); /* up to the first NULL */
    void (*finish)(void);              /* after the threads have ended; may be NULL */
    const char *must_fail;             /* part of the message when it is to fail, else NULL */
    uint64_t executions;               /* how many there have to be; 0: any number */
    void (*conclude)(void);            /* after the search; may be NULL */
    unsigned preemptions_max;          /* 0: any number; else the search is not exhaustive, and as
                                        * few loads return an overwritten value */
    bool aborts;                       /* every execution has to end by fatal_pointer */
};

/* Defines a scenario that main.c finds. */
#define SCENARIO(id)                                                                               \
    static const struct scenario id;                                                               \
    static const struct scenario *const id##_entry __attribute__((used, section("scenarios"))) =   \
        &id;                                                                                       \
    static const struct scenario id

/* Ends the search with a report. */
_Noreturn void model_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define CHECK(x) ((x) ? (void)0 : model_fail("%s:%d: CHECK(%s)", __FILE__, __LINE__, #x))

/* The thread waits until what it loads next has a store that it has not seen: the pause of a spin
 * loop. */
void model_yield(void);

/* The number of the running thread in its scenario. */
int model_thread(void);

/* What fork leaves in the child: the calling thread alone, under a new id. */
void model_fork(void);

/* Called, while it is not NULL, before each lock is taken and after each is opened; by the model of
 * the lock. */
extern void (*model_between_locks)(void);

/* Runs the thread's exit hook (the destructor of a key), as its end would. */
void model_exit_thread(void);

/* In each execution os_make_writable fails so many times first; for `prepare`. */
void model_fail_protect(unsigned count);

/* From now on pthread_create fails; for `prepare`. */
void model_refuse_threads(void);

/* The handlers that were registered with pthread_atfork. */
struct fork_handlers {
    void (*before)(void);
    void (*in_parent)(void);
    void (*in_child)(void);
};

extern struct fork_handlers fork_handlers;

/* What the clock shows the calling thread from now on; 1 in the beginning. */
void model_set_time(uint64_t time_ms);

/* The address of the `index`th region of 2 MiB that the system may map. */
char *model_region(unsigned index);
bool model_region_is_mapped(unsigned index);

#endif
