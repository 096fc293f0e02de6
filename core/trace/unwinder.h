/* The unwinder of libgcc_s, which is loaded when it is first needed. */
#ifndef TRACE_UNWINDER_H
#define TRACE_UNWINDER_H

#include <unwind.h>

#include "base/macros.h"

struct range {
    uintptr_t start, end;
};

ALWAYS_INLINE bool range_has(const struct range *range, uintptr_t address)
{
    return address - range->start < range->end - range->start;
}

/* Const once it is open. */
extern struct unwinder {
    _Unwind_Reason_Code (*backtrace)(_Unwind_Trace_Fn, void *);
    _Unwind_Ptr (*get_ip)(struct _Unwind_Context *);
    _Unwind_Word (*get_cfa)(struct _Unwind_Context *);
    _Unwind_Word (*get_register)(struct _Unwind_Context *, int);
    const void *(*find_table)(void *, void *[3]); /* what the tables have of an address */
    struct range library;                         /* where it lies */
} unwinder;

/* False: there is none. To be called outside of allocations, by one thread at a time. */
bool unwinder_open(void);

/* It is used from here on, with signals blocked: a handler might want a stack, too, and it has
 * locks. False: it is not open, or it is closed for good, since this is the child of a fork that
 * happened while another thread held one of them. */
bool unwinder_begin(uint64_t *blocked);
void unwinder_end(uint64_t blocked);

#endif
