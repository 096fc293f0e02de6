/* The target `heap`: see heap_others.c. */
#ifndef FUZZ_HEAP_OTHERS_H
#define FUZZ_HEAP_OTHERS_H

#include "heap.h"
#include "heap_record.h"

void step_too_large(struct actor *actor, const struct block *slot, const struct record *record);
void step_bad_alignment(struct actor *actor, const struct record *record);
void step_other_names(struct actor *actor, const struct record *record);
void step_report(const struct record *record);

#endif
