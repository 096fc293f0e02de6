/* The unwinder of libgcc_s, which is loaded when it is first needed. */
#ifndef PROFILE_UNWINDER_H
#define PROFILE_UNWINDER_H

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
    bool is_open;
} unwinder;

/* False: there is none. To be called outside of allocations, by one thread at a time. */
bool unwinder_open(void);

/* In any thread. */
ALWAYS_INLINE bool unwinder_is_open(void)
{
    return __atomic_load_n(&unwinder.is_open, __ATOMIC_ACQUIRE);
}

#endif
