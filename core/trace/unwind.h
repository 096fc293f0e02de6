/* Stacks: the addresses behind the calls that led to an allocation.
 *
 * The unwinder is that of libgcc_s, opened when sampling begins, or frame pointers are followed,
 * as far as they stay inside the stack. Unwinding takes microseconds, and sampled stacks repeat: so
 * of the last ones of each thread it is kept where on the stack each return address was. When all
 * of them lie there still, the stack is the same: the place of one follows from the function that
 * the one before leads to, and, where a frame may be of any length, from its frame pointer, which
 * then has to be the same, too.
 *
 * An unwinder may allocate, and may wait for the dynamic linker. So nothing here is called with a
 * lock held or a heap entered, and who calls it sees to it that it is not called again from within.
 */
#ifndef TRACE_UNWIND_H
#define TRACE_UNWIND_H

#include "trace/site.h"

/* How many stacks are kept of a thread. */
enum { UNWIND_KEPT = 32 };

/* Where a frame pointer is that tells how long its frame is. */
struct unwind_pointer {
    uint8_t frame; /* whose it is */
    uint8_t call;  /* the frame below whose place it is saved .. */
    uint8_t words; /* .. and how far; 0: it is in its register yet */
};

/* How many of a stack can be kept that were not saved right below the return address. */
enum { UNWIND_POINTERS = 16 };

struct unwind_kept {
    uintptr_t top;     /* stack pointer before the call */
    struct site *site; /* NULL: none is kept here */
    uint32_t count, pointers;
    uint32_t chained; /* frames whose pointers are saved right below the return address, as bits */
    uint32_t offset[SITE_FRAMES_MAX];               /* of a return address, from `top` */
    uintptr_t address[SITE_FRAMES_MAX];             /* what stood there */
    struct unwind_pointer pointer[UNWIND_POINTERS]; /* the other ones */
};
_Static_assert(SITE_FRAMES_MAX <= 32, "each frame has a bit");

struct unwind_stack {
    uintptr_t low, high; /* the thread's stack; 0: not known yet */
    struct unwind_kept kept[UNWIND_KEPT];
};

/* Finds the unwinder, or does without; `frames`: by frame pointers. To be called outside of
 * allocations. */
void unwind_open(bool frames);

/* The site that the stack belongs to. */
struct site *unwind_site(struct unwind_stack *stack, const struct trace_start *start);

#endif
