/* A word that one thread at a time may claim; nobody waits for it for long. In a child of fork,
 * claims of the parent's threads are void. */
#ifndef TRACE_CLAIM_H
#define TRACE_CLAIM_H

#include "os/identity.h"
#include "os/os.h"

/* Naps of a millisecond before a thread gives up waiting for another one. */
enum { CLAIM_NAPS = 20 };

static inline bool claim_take(uint64_t *claim)
{
    uint64_t self = identity_self(), holder = ATOMIC_LOAD_RELAXED(claim);
    if (holder != 0 && identity_is_local(holder))
        return false;
    return __atomic_compare_exchange_n(
        claim, &holder, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* Takes the claim after some naps; without, if a signal handler has interrupted the holder. */
static inline bool claim_wait(uint64_t *claim)
{
    bool taken = claim_take(claim);
    for (unsigned nap = 0; nap < CLAIM_NAPS && !taken; nap++) {
        if (ATOMIC_LOAD_RELAXED(claim) == identity_self())
            break;
        os_sleep_ms(1);
        taken = claim_take(claim);
    }
    return taken;
}

static inline void claim_release(uint64_t *claim)
{
    ATOMIC_STORE_RELEASE(claim, 0);
}

#endif
