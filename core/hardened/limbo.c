/* See limbo.h. */
#include "hardened/limbo.h"

#include "base/assert.h"

static void end_waiting(const struct limbo *limbo, void *freed)
{
    ATOMIC_ADD_RELAXED(&limbo->queue->bytes, -limbo->bytes_of(freed));
    limbo->end(freed);
}

/* Takes out the oldest block, if more than `bytes_max` bytes and more than `youngest` blocks wait;
 * else NULL. */
static void *take_out(struct limbo_queue *queue, size_t bytes_max, unsigned youngest)
{
    while (ATOMIC_LOAD_RELAXED(&queue->bytes) > bytes_max) {
        uint64_t turn = ATOMIC_LOAD_RELAXED(&queue->taken);
        if (turn + youngest >= ATOMIC_LOAD_RELAXED(&queue->put))
            break;
        if (!__atomic_compare_exchange_n(
                &queue->taken, &turn, turn + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            continue;
        /* A block that another thread is just putting there stays until its turn comes again. */
        void *oldest =
            __atomic_exchange_n(&queue->slots[turn % LIMBO_SLOTS], NULL, __ATOMIC_ACQ_REL);
        if (oldest)
            return oldest;
    }
    return NULL;
}

static void end_oldest(const struct limbo *limbo, size_t bytes_max, unsigned youngest)
{
    void *oldest;
    while ((oldest = take_out(limbo->queue, bytes_max, youngest)) != NULL)
        end_waiting(limbo, oldest);
}

void limbo_release(const struct limbo *limbo, size_t bytes_max)
{
    end_oldest(limbo, bytes_max, 0);
}

/* Skips turns whose blocks were pushed out by later ones, which may end in any order. */
static void pass(struct limbo_queue *queue, uint64_t turn)
{
    uint64_t taken = ATOMIC_LOAD_RELAXED(&queue->taken);
    while (taken < turn &&
           !__atomic_compare_exchange_n(
               &queue->taken, &taken, turn, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
}

void limbo_put(const struct limbo *limbo, void *freed)
{
    struct limbo_queue *queue = limbo->queue;
    uint64_t turn = ATOMIC_ADD_RELAXED(&queue->put, 1);
    ATOMIC_ADD_RELAXED(&queue->bytes, limbo->bytes_of(freed));
    void *oldest = __atomic_exchange_n(&queue->slots[turn % LIMBO_SLOTS], freed, __ATOMIC_ACQ_REL);
    if (oldest) {
        /* In the first round a slot holds a block only if later turns have overtaken this one. */
        if (turn >= LIMBO_SLOTS)
            pass(queue, turn - LIMBO_SLOTS + 1);
        end_waiting(limbo, oldest);
    }
    end_oldest(limbo, limbo->bytes_max, limbo->youngest);
}

void limbo_check(const struct limbo *limbo, void (*look)(const void *waiting))
{
    const struct limbo_queue *queue = limbo->queue;
    uint64_t waiting = 0;
    size_t bytes = 0;
    for (unsigned i = 0; i < LIMBO_SLOTS; i++) {
        const void *slot = queue->slots[i];
        if (!slot)
            continue;
        look(slot);
        waiting++;
        bytes += limbo->bytes_of(slot);
    }
    ASSERT(bytes == queue->bytes);
    ASSERT(queue->taken <= queue->put && waiting <= queue->put - queue->taken);
    (void)waiting; /* only asserted on */
    (void)bytes;
}
