/* The calls that led to a place, frame by frame.
 *
 * A step follows the tables that compilers write for exceptions (.eh_frame, found by
 * .eh_frame_hdr), or, for code without tables, the frame pointer. Every read is checked, and each
 * frame lies above the one before, so a walk ends well whatever the memory holds. Nothing is called
 * that may allocate or wait, but for what finds the code.
 */
#ifndef TRACE_FRAMES_H
#define TRACE_FRAMES_H

#include "trace/unwind_table.h"

struct frame {
    uintptr_t pc;
    uintptr_t registers[FRAME_REGISTERS]; /* indexed by DWARF number */
    bool is_exact;  /* `pc` is the interrupted instruction, not a return address */
    bool had_table; /* of the code where the last step began */
};

extern const char *const frame_register_names[FRAME_REGISTERS];

/* Starts at the context that a signal handler got. */
void frame_from_signal(struct frame *frame, const void *context);

/* Starts at the caller. */
void frame_from_here(struct frame *frame, struct reader *reader);

/* Goes to the caller's frame; false: there is none, or it cannot be found. */
bool frame_up(struct frame *frame, struct reader *reader);

#endif
