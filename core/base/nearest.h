/* How far apart two names are, to find what somebody who mistyped one may have meant. */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include "base/macros.h"

/* Letters of a name that count; the others are not looked at. */
enum { NEAREST_LETTERS = 32 };

/* Number of single-letter edits between the first `length` letters of `name` and `other`. */
unsigned nearest_distance(const char *name, size_t length, const char *other);

#endif
