/* Whether memory is zero. */
#ifndef BASE_ZERO_H
#define BASE_ZERO_H

#include <string.h>

#include "base/macros.h"

/* Of a word or more: the first word is zero, and each byte is what lies a word before it. False for
 * less. */
static inline bool bytes_are_zero(const char *bytes, size_t count)
{
    const uint64_t zero = 0;
    return count >= sizeof zero && memcmp(bytes, &zero, sizeof zero) == 0 &&
           memcmp(bytes, bytes + sizeof zero, count - sizeof zero) == 0;
}

#endif
