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
    const void *(*find_table)(void *, void *[3]); /* an address's entry in the tables */
    struct range library;                         /* the addresses of libgcc_s */
} unwinder;

/* Opens it; false: it cannot be. To be called outside of allocations, by one thread at a time. */
bool unwinder_open(void);

/* Begins a use, with signals blocked: the unwinder has locks, and a handler might take a stack,
 * too. False: it is not open, or closed for good, since another thread of the parent was using it
 * at fork. */
bool unwinder_begin(uint64_t *blocked);
void unwinder_end(uint64_t blocked);

#endif
