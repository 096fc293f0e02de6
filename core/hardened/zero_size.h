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
#ifndef HARDENED_ZERO_SIZE_H
#define HARDENED_ZERO_SIZE_H

#include "base/atomic.h"
#include "hardened/word.h"

enum { ZERO_SIZE_SLOTS = 1 << 20, ZERO_SIZE_BYTES = ZERO_SIZE_SLOTS * MIN_ALIGNMENT };

/* The start of the range, 0 until there is one. Atomic: release on store pairs with acquire on
 * load. */
extern uintptr_t zero_size_start;

ALWAYS_INLINE bool zero_size_covers(const void *address)
{
    uintptr_t start = ATOMIC_LOAD_ACQUIRE(&zero_size_start);
    return UNLIKELY(start != 0) && (uintptr_t)address - start < ZERO_SIZE_BYTES;
}

/* An address for a function of that kind, at a multiple of the alignment, a power of two, and of
 * 16; NULL: none is left, or there is no memory for the range, which the first call reserves. */
void *zero_size_take(size_t alignment, enum form form);

/* The kind of function that an address in the range belongs to. */
enum form zero_size_form(const void *address);

/* Aborts, naming `call`, if the address, which lies in the range, is not taken. */
void zero_size_check(const void *address, const char *call);

/* Gives an address back; aborts as zero_size_check does. */
void zero_size_free(const void *address);

/* Debug walker, while no thread takes one; returns how many are taken. */
unsigned zero_size_taken(void);

#endif
