/* Stacks: the return addresses of the calls that led to an allocation.
 *
 * They are found by frames.h: by the tables of the code, or by frame pointers alone. That takes
 * microseconds, and sampled stacks repeat, so each thread keeps the places of the return addresses
 * of its last stacks. If all of them are still there, the stack is the same: the place of each
 * follows from the function that the one before returns to, and, if a frame has a variable length,
 * from its frame pointer, which is compared, too.
 *
 * Where the thread's stack lies is asked of the C library, which may allocate, and the tables are
 * found by the dynamic linker. So nothing here is called with a lock held or a heap entered, and
 * the caller prevents calls from within.
 */
#ifndef TRACE_UNWIND_H
#define TRACE_UNWIND_H

#include "trace/site.h"

/* How many stacks are kept of a thread. */
enum { UNWIND_KEPT = 32 };

/* Where a frame pointer is saved that tells how long its frame is. */
struct unwind_pointer {
    uint8_t frame; /* the frame it belongs to */
    uint8_t call;  /* it is saved below the place of this frame .. */
    uint8_t words; /* .. by so many words; 0: it is still in its register */
};

/* The most frame pointers kept of a stack that are not saved right below the return address. */
enum { UNWIND_POINTERS = 16 };

struct unwind_kept {
    uintptr_t top;     /* stack pointer before the call */
    struct site *site; /* NULL: none is kept here */
    uint32_t count, pointers;
    uint32_t chained; /* frames whose pointers are saved right below the return address, as bits */
    uint32_t offset[SITE_FRAMES_MAX];               /* of a return address, from `top` */
    uintptr_t address[SITE_FRAMES_MAX];             /* the return addresses */
    struct unwind_pointer pointer[UNWIND_POINTERS]; /* the other ones */
};
_Static_assert(SITE_FRAMES_MAX <= 32, "each frame has a bit");

struct unwind_stack {
    uintptr_t low, high; /* the thread's stack; 0: not known yet */
    struct unwind_kept kept[UNWIND_KEPT];
};

/* Says how stacks are followed from now on. */
void unwind_open(bool by_pointers);

/* The site that the stack belongs to. */
struct site *unwind_site(struct unwind_stack *stack, const struct trace_start *start);

#endif
