/* Describes any address in words, for reports of a program that dies of it.
 *
 * It takes no lock and never aborts: the caller may have interrupted a change, and other threads go
 * on. A description may be outdated by one change.
 */
#ifndef TRACE_ADDRESS_H
#define TRACE_ADDRESS_H

#include "base/text.h"
#include "trace/sample.h"

/* Appends a description. False, and nothing appended: the address lies neither in memory of hakmem
 * nor less than `near_bytes` behind it. */
bool address_describe(struct text *text, const void *address, size_t near_bytes);

/* The sample of the block that the address lies in; NULL: that is no sample, or free. */
const struct sample *address_sample(const void *address);

/* If the address lies in a block of a slab, appends lines about the blocks before and behind it. */
void address_describe_neighbours(struct text *text, const void *address);

#endif
