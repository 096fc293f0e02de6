/* Recording that is begun and ended from outside, while the program runs.
 *
 * An observer who may write to the memory of the process fills in what it wants and sets `request`,
 * last. The next slow path of malloc, of whichever thread, sees that. What has to be done then may
 * wait for the dynamic linker, and may not be done in the middle of a malloc, whose caller may hold
 * a lock that others want who hold the linker's. So a thread of its own does it, which holds
 * nothing, and ends. Nothing is stopped, and nobody waits.
 *
 *     observer         path, mean_bytes, request
 *     a slow path                                  takes the request, starts the thread
 *     that thread                                  is_recording, said, answers
 */
#ifndef TRACE_ATTACH_H
#define TRACE_ATTACH_H

#include "base/atomic.h"
#include "base/macros.h"

enum attach_request { ATTACH_NOTHING, ATTACH_BEGIN, ATTACH_END };

enum { ATTACH_PATH_BYTES = 4096, ATTACH_SAID_BYTES = 640 };

extern struct attach {
    uint32_t request;                 /* atomic, any thread: an enum attach_request */
    uint32_t answers;                 /* atomic: counts the requests that were answered; release */
    uint32_t is_recording;            /* by who answers: whether it came to that */
    uint64_t mean_bytes;              /* by the observer: mean distance of two samples */
    char path[ATTACH_PATH_BYTES];     /* by the observer: as HAKMEM_RECORD_FILE */
    char said[ATTACH_SAID_BYTES];     /* what the log complained of last; ends with a NUL */
    void (*answer)(uint32_t request); /* const once the library has started */
} attachment;

ALWAYS_INLINE bool attach_is_asked(void)
{
    return UNLIKELY(ATOMIC_LOAD_RELAXED(&attachment.request) != ATTACH_NOTHING);
}

/* In a slow path, with no lock held: has the request answered. */
SLOW_PATH void attach_take(void);

#endif
