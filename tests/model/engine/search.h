/* The search as main.c drives it. */
#ifndef MODEL_SEARCH_H
#define MODEL_SEARCH_H

#include "engine/engine.h"

struct search_result {
    uint64_t executions; /* that ran to their end; no two are equivalent */
    uint64_t steps;
    bool complete;
};

/* Explores all executions of the scenario, or so many; 0 is no bound. */
struct search_result search_run(const struct scenario *scenario, uint64_t executions_max);

/* Shows the last steps of the execution under way. */
void search_print_trace(void (*print)(const struct op *op, int thread, uint64_t note));

/* Implemented by main.c: says what a thread waits for. */
void search_report_wait(int thread, const struct op *op, bool sleeps);

/* True when the thread of the scenario has ended; a step. */
bool search_has_ended(int thread);

#endif
