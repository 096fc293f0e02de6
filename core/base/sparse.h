/* Clears, copies and checks memory of which few pages were ever written to. Reading an unwritten
 * page takes no memory; writing to it, even zeroes, does. All sizes here are multiples of eight
 * bytes. */
#ifndef BASE_SPARSE_H
#define BASE_SPARSE_H

#include "base/macros.h"

/* The granularity: no system has smaller pages. */
#define SPARSE_STEP (4 * KIB)

/* True if all of it is zero. The range must not be empty. */
bool sparse_is_zero(const void *start, size_t size);

/* Makes it zero; returns how many bytes were in steps that were not. */
size_t sparse_clear(void *start, size_t size);

/* Copies to a target that is all zero, and is not touched where the source is zero, or that holds
 * anything. */
enum sparse_target { SPARSE_TO_ZEROES, SPARSE_TO_ANYTHING };

void sparse_copy(void *to, const void *from, size_t size, enum sparse_target target);

#endif
