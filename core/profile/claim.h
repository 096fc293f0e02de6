/* A word that one thread at a time may claim; nobody waits for it. What a thread of the parent had
 * claimed is free in a child of fork. */
#ifndef PROFILE_CLAIM_H
#define PROFILE_CLAIM_H

#include "os/identity.h"

static inline bool claim_take(uint64_t *claim)
{
    uint64_t self = identity_self(), holder = ATOMIC_LOAD_RELAXED(claim);
    if (holder != 0 && identity_is_local(holder))
        return false;
    return __atomic_compare_exchange_n(
        claim, &holder, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void claim_release(uint64_t *claim)
{
    ATOMIC_STORE_RELEASE(claim, 0);
}

#endif
