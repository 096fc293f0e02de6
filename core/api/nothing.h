/* What the hardened preset returns for no bytes: addresses that nobody can touch, each of them its
 * owner's until it is freed.
 *
 * Slots of 16 bytes in a reserved range, with a bit each, which are taken in turn. No lock: who
 * sets the bit has the slot.
 */
#ifndef API_NOTHING_H
#define API_NOTHING_H

#include "base/atomic.h"
#include "base/macros.h"

/* The range, 0 until there is one. Atomic: release on store of `nothing_start`, which is last,
 * pairs with acquire on load. */
extern uintptr_t nothing_start;
extern size_t nothing_bytes;

ALWAYS_INLINE bool nothing_covers(const void *address)
{
    uintptr_t start = ATOMIC_LOAD_ACQUIRE(&nothing_start);
    return UNLIKELY(start != 0) && (uintptr_t)address - start < nothing_bytes;
}

/* Reserves the range; false: there is no memory for it. Once. */
bool nothing_open(void);

/* An address, at a multiple of 16; NULL: all are taken. */
void *nothing_take(void);

/* Aborts, naming `call`, when the address, which lies in the range, was not taken. */
void nothing_check(const void *address, const char *call);

/* Gives it back; aborts as that. */
void nothing_free(const void *address);

#endif
