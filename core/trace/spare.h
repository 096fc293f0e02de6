/* Spares: of each class but the longest one free block of a sampled slab, for the next sample.
 * Where samples die young, each would end its slab and the next one make it anew.
 *
 * A spare is free memory that its bin does not know of: they are flushed by ticks, before memory
 * grows, and by who gives all back, and none are kept while nothing is sampled. At most a slab a
 * class is held by them.
 *
 * No lock: who takes a block out of its place has it.
 */
#ifndef TRACE_SPARE_H
#define TRACE_SPARE_H

#include "base/macros.h"

/* The spare of the class; NULL: there is none. */
void *spare_take(unsigned size_class);

/* Keeps the block as the spare of its class; false: there is one, or the class has none. */
bool spare_put(unsigned size_class, void *block);

/* Returns all of them to the bins. */
void spare_flush(void);

#endif
