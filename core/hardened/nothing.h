/* Blocks of no bytes in the hardened library: untouchable addresses, each of which has one owner
 * until it is freed.
 *
 * Slots of 16 bytes in a reserved range, with a bit each, are taken in turn. The third of the range
 * in which a slot lies tells the kind of function that it was requested by:
 *
 *     malloc ................................ | new ............ | new[] ......... |
 *
 * No lock: the thread that sets the bit owns the slot.
 */
#ifndef HARDENED_NOTHING_H
#define HARDENED_NOTHING_H

#include "base/atomic.h"
#include "hardened/word.h"

enum { NOTHING_SLOTS = 1 << 20, NOTHING_BYTES = NOTHING_SLOTS * MIN_ALIGNMENT };

/* The start of the range, 0 until there is one. Atomic: release on store pairs with acquire on
 * load. */
extern uintptr_t nothing_start;

ALWAYS_INLINE bool nothing_covers(const void *address)
{
    uintptr_t start = ATOMIC_LOAD_ACQUIRE(&nothing_start);
    return UNLIKELY(start != 0) && (uintptr_t)address - start < NOTHING_BYTES;
}

/* An address for a function of that kind, at a multiple of the alignment, a power of two, and of
 * 16; NULL: none is left, or there is no memory for the range, which the first call reserves. */
void *nothing_take(size_t alignment, enum form form);

/* The kind of function that an address in the range belongs to. */
enum form nothing_form(const void *address);

/* Aborts, naming `call`, if the address, which lies in the range, is not taken. */
void nothing_check(const void *address, const char *call);

/* Gives an address back; aborts as nothing_check does. */
void nothing_free(const void *address);

/* Debug walker, while no thread takes one; returns how many are taken. */
unsigned nothing_taken(void);

#endif
