/* Internal invariants: checked in builds with HAKMEM_DEBUG=1, assumed by the others.
 *
 * Mistakes of a caller are not asserted here but always checked: see os/fatal.h.
 */
#ifndef BASE_ASSERT_H
#define BASE_ASSERT_H

#include "base/macros.h"

/* Prints the broken invariant and aborts (os/fatal.c). */
_Noreturn void assert_failed(const char *expression, const char *file, int line);

#define ASSERT(x)                                                                                  \
    do {                                                                                           \
        if (HAKMEM_DEBUG && !(x))                                                                  \
            assert_failed(#x, __FILE__, __LINE__);                                                 \
    } while (0)

#endif
