/* When the next pop of a magazine is due: after so many pops that the thread looks at the clock now
 * and then, or, if that comes first, when a block is to be sampled.
 *
 * Samples are a Poisson process in bytes: each byte of each block has the same chance, 1 to the
 * mean, to start one, whatever block, class and thread it belongs to. So a block of S bytes is
 * sampled with the chance 1 - e^(-S / mean), and the number of blocks of one class up to the next
 * sample is geometric. What is left of such a gap has the same distribution as all of it: a gap may
 * be drawn anew at any time.
 *
 * No lock: the mean is one word, and a gap that was drawn by another one is not believed.
 */
#ifndef TRACE_DUE_H
#define TRACE_DUE_H

#include "base/tuning.h"
#include "trace/trace.h"

/* Sets the mean distance of two samples; 0: there are none. */
void due_set_mean(size_t bytes);
size_t due_mean(void);

/* How many blocks of so many bytes a sampled one stands for, times SITE_PARTS: one to its chance; 0
 * while there are no samples. */
uint64_t due_stands_for(size_t bytes);

/* Decides by that chance. `*random` is the state of the caller's generator, not 0 but before the
 * first call. */
bool due_decide(uint64_t *random, size_t bytes);

/* Pops of blocks of so many bytes up to the next that is due; `*round`: trace_round when that is to
 * be a sample, else 0. */
uint64_t due_next(uint64_t *random, size_t bytes, uint8_t *round);

#endif
