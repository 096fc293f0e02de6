/* Spares: for each class up to SPARE_BYTES_MAX, one free block of a sampled slab, for the next
 * sample. Without it, samples that die young would each end their slab, and the next make it anew.
 *
 * A spare is free memory that its bin does not know of. Spares are flushed by ticks, before memory
 * grows, and when all memory is given back; none are kept while sampling is off. They hold at most
 * one slab a class.
 *
 * No lock: the thread that takes a block out of its place owns it.
 */
#ifndef TRACE_SPARE_H
#define TRACE_SPARE_H

#include "base/macros.h"

/* The spare of the class; NULL: there is none. */
void *spare_take(unsigned size_class);

/* Keeps the block as the spare of its class; false: there is one already, or the class has none. */
bool spare_put(unsigned size_class, void *block);

/* Returns all of them to the bins. */
void spare_flush(void);

#endif
