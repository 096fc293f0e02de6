/* When the next pop of a magazine is due: after POPS_UNTIL_DUE pops, so that the thread looks at
 * the clock now and then, or earlier, if a block is to be sampled.
 *
 * Samples are a Poisson process in bytes: each byte of each block has the same chance, 1 to the
 * mean, to start one, whatever block, class and thread it belongs to. So a block of S bytes is
 * sampled with the chance 1 - e^(-S / mean), and the number of blocks of one class up to the next
 * sample is geometric. The rest of a gap has the same distribution as a whole one: a gap may be
 * drawn anew at any time.
 *
 * No lock: the mean is one word, and gaps drawn under an earlier mean are ignored.
 */
#ifndef TRACE_DUE_H
#define TRACE_DUE_H

#include "base/tuning.h"
#include "trace/trace.h"

/* Sets the mean distance of samples in bytes; 0: none are taken. */
void due_set_mean(size_t bytes);
size_t due_mean(void);

/* How many blocks of that size a sampled one stands for, times SITE_PARTS: 1 divided by its chance.
 * 0 while no samples are taken. */
uint64_t due_stands_for(size_t bytes);

/* Decides by that chance. `*random` is the state of the caller's generator; 0 before the first
 * call. */
bool due_decide(uint64_t *random, size_t bytes);

/* How many pops of blocks of that size until the next is due, `most` at most. `*round`: trace_round
 * if that one is to be a sample, else 0. */
uint64_t due_next(uint64_t *random, size_t bytes, uint64_t most, uint8_t *round);

#endif
