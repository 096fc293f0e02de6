/* Memory of which only some pages were ever written to. Reading a page of it that was not takes no
 * memory; writing to it, be it zeroes, does. All sizes here are multiples of eight bytes. */
#ifndef BASE_SPARSE_H
#define BASE_SPARSE_H

#include "base/macros.h"

/* The least that is told apart: no system has smaller pages. */
#define SPARSE_STEP (4 * KIB)

/* True when all of it is zero; not of an empty range. */
bool sparse_is_zero(const void *start, size_t size);

/* Makes it zero. */
void sparse_clear(void *start, size_t size);

/* Copies it to a target that is all zero, and then is not even read where the source is zero, or
 * holds anything. */
enum sparse_target { SPARSE_TO_ZEROES, SPARSE_TO_ANYTHING };

void sparse_copy(void *to, const void *from, size_t size, enum sparse_target target);

#endif
