/* Faults that the self-test plants into the allocator. */
#ifndef STRESS_FAULTS_H
#define STRESS_FAULTS_H

#include "stress.h"

struct fault {
    const char *name;
    void (*plant)(struct entries *entries); /* replaces some of the functions; NULL: a control */
    const char *expected;                   /* what the report must say; NULL: nothing at all */
    bool aborts;                            /* found at once, not when the accounts are settled */
    unsigned threads;
};

extern const struct fault faults[];
extern const unsigned faults_count;

/* The functions that faulty ones pass most calls on to. */
void faults_begin(const struct entries *real);

/* foreign.c: serves everything from a mapping of its own, correctly but without hakmem. */
void plant_foreign(struct entries *entries);

#endif
