/* mallopt's M_PERTURB, to find programs that read unwritten or freed memory: malloc fills a block
 * with the complement of a byte, free fills it with the byte.
 *
 * The hit paths know nothing of it: while it is on, the heaps stay parked, so that every call takes
 * a slow path, which fills. A running thread notices at its next slow path. Zeroed blocks stay
 * zero, and the first word of a freed short block is its mark.
 */
#ifndef API_PERTURB_H
#define API_PERTURB_H

#include <string.h>

#include "base/atomic.h"
#include "base/macros.h"

extern int perturb; /* atomic relaxed, any thread; 0: off */

/* The byte is the lowest of `value`; 0 turns it off. */
void perturb_set(int value);

ALWAYS_INLINE bool perturb_is_on(void)
{
    return ATOMIC_LOAD_RELAXED(&perturb) != 0;
}

/* Fill a block that is handed out, or freed. */
ALWAYS_INLINE void perturb_allocated(void *block, size_t size)
{
    memset(block, ~ATOMIC_LOAD_RELAXED(&perturb), size);
}

ALWAYS_INLINE void perturb_freed(void *block, size_t size)
{
    memset(block, ATOMIC_LOAD_RELAXED(&perturb), size);
}

#endif
