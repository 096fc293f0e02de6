/* Guarded samples: blocks that end before a page that cannot be touched, and that cannot be touched
 * themselves after they were freed. A program that writes behind such a block, or uses it after its
 * free, ends by SIGSEGV, and the report (trace/crash.h) shows where it was allocated and freed.
 *
 *     slot     | none           | none | block's pages |  none           | none |  pages ...
 *                                            block ... ^ end, up to alignment
 *
 * Slots of a reserved range are taken in turn, so that a freed block stays untouchable as long as
 * possible. If all are in use, a sample is not guarded.
 *
 * No lock: an atomic step takes a slot, and only the taker writes its record.
 */
#ifndef TRACE_GUARD_H
#define TRACE_GUARD_H

#include "trace/site.h"

struct sample;

enum { GUARD_SLOTS = 256 };

enum guard_state { GUARD_FREE, GUARD_TAKEN, GUARD_LIVE, GUARD_DEAD };

struct guard {
    uint32_t state;        /* atomic: release when it is live pairs with acquire on look */
    uint32_t born_by;      /* threads, by their ids in the system */
    uint32_t freed_by;     /* 0: nobody yet */
    char *block;           /* the last one that lay here */
    size_t size;           /* requested bytes */
    struct sample *sample; /* while it is live */
    const struct site *born, *freed;
};

/* The reserved range; both are 0 until there is one. Atomic: release on store of `start`, which is
 * last, pairs with acquire on load. */
extern uintptr_t guard_start;
extern size_t guard_bytes;

ALWAYS_INLINE bool guard_covers(const void *address)
{
    uintptr_t start = ATOMIC_LOAD_ACQUIRE(&guard_start);
    return UNLIKELY(start != 0) && (uintptr_t)address - start < guard_bytes;
}

/* Reserves the range; false: there is no memory for it. To be called once, by one thread at a time.
 */
bool guard_open(void);

/* A zeroed block for the sample, allocated at the site `born`. NULL: it does not fit a slot, or no
 * slot is free. */
void *guard_take(
    struct sample *sample, const struct site *born, size_t size, size_t alignment, uint32_t thread);

/* The slot that the address lies in; one in the page behind a slot belongs to it, too. */
struct guard *guard_of(const void *address);

/* Usable bytes of a live block. Aborts, naming `call`, if it is not one. */
size_t guard_size(const struct guard *guard, const void *block, const char *call);

/* Frees the block, which cannot be touched any more, and returns its sample. Aborts as free does.
 */
struct sample *guard_put(
    struct guard *guard, const void *block, const struct site *freed, uint32_t thread);

#endif
