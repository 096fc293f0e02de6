/* What hakmem knows of any address, in words: for reports of a program that dies of it.
 *
 * Looks without locks and aborts never: whoever asks may have been interrupted in the middle of a
 * change, and other threads go on. What it says may be outdated by that one change.
 */
#ifndef TRACE_ADDRESS_H
#define TRACE_ADDRESS_H

#include "base/text.h"
#include "trace/sample.h"

/* Appends what the address is; false, and nothing, when hakmem knows nothing of it. Less than
 * `near_bytes` behind memory of hakmem it is said to be so. */
bool address_describe(struct text *text, const void *address, size_t near_bytes);

/* The sample that the block is in which the address lies; NULL: it is none, or free. */
const struct sample *address_sample(const void *address);

/* Appends lines that tell of the blocks before and behind the one that the address lies in, if it
 * lies in a block of a slab. */
void address_describe_neighbours(struct text *text, const void *address);

#endif
