/* The calls that led to a place, frame by frame, for a process that is about to end.
 *
 * By the tables that compilers write for exceptions (.eh_frame, found by .eh_frame_hdr), and where
 * a place has none, by frame pointers. Every read is checked, frames only ever lie further up the
 * stack, and their number is bounded, so that it ends well whatever the memory holds. Nothing is
 * called that may allocate or wait.
 *
 * One thread at a time, between modules_open and modules_close.
 */
#ifndef TRACE_FRAMES_H
#define TRACE_FRAMES_H

#include "trace/unwind_table.h"

struct frame {
    uintptr_t pc;
    uintptr_t registers[FRAME_REGISTERS]; /* by their numbers in the tables */
    bool is_exact; /* `pc` is where it was interrupted, and not behind a call */
};

extern const char *const frame_register_names[FRAME_REGISTERS];

/* The place in a context that a signal handler got. */
void frame_from_signal(struct frame *frame, const void *context);

/* Where this is called. */
void frame_from_here(struct frame *frame);

/* The caller's; false: there is none, or it is not to be found. */
bool frame_up(struct frame *frame);

#endif
