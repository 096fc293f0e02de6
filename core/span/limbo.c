/* See limbo.h. */
#include "span/limbo.h"

void *limbo_put(struct limbo *limbo, void *freed, size_t bytes)
{
    uint64_t turn = ATOMIC_ADD_RELAXED(&limbo->put, 1), before = turn - LIMBO_SLOTS;
    ATOMIC_ADD_RELAXED(&limbo->bytes, bytes);
    void *oldest = __atomic_exchange_n(&limbo->slots[turn % LIMBO_SLOTS], freed, __ATOMIC_ACQ_REL);
    if (oldest)
        __atomic_compare_exchange_n(
            &limbo->taken, &before, before + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return oldest;
}

void *limbo_take(struct limbo *limbo, size_t bytes_max)
{
    while (ATOMIC_LOAD_RELAXED(&limbo->bytes) > bytes_max) {
        uint64_t turn = ATOMIC_LOAD_RELAXED(&limbo->taken);
        if (turn == ATOMIC_LOAD_RELAXED(&limbo->put))
            break;
        if (!__atomic_compare_exchange_n(
                &limbo->taken, &turn, turn + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            continue;
        /* What somebody is just putting there stays until its turn comes again. */
        void *oldest =
            __atomic_exchange_n(&limbo->slots[turn % LIMBO_SLOTS], NULL, __ATOMIC_ACQ_REL);
        if (oldest)
            return oldest;
    }
    return NULL;
}

void limbo_tell(struct limbo *limbo, size_t bytes)
{
    ATOMIC_ADD_RELAXED(&limbo->bytes, -bytes);
}
