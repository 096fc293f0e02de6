/* See quarantine.h. */
#include "hardened/quarantine.h"

#include "base/assert.h"

static void end_waiting(const struct quarantine *quarantine, void *freed)
{
    ATOMIC_ADD_RELAXED(&quarantine->queue->bytes, -quarantine->bytes_of(freed));
    quarantine->end(freed);
}

/* Takes out the oldest block, if more than `bytes_max` bytes and more than `youngest` blocks wait;
 * else NULL. */
static void *take_out(struct quarantine_queue *queue, size_t bytes_max, unsigned youngest)
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
            __atomic_exchange_n(&queue->slots[turn % QUARANTINE_SLOTS], NULL, __ATOMIC_ACQ_REL);
        if (oldest)
            return oldest;
    }
    return NULL;
}

static void end_oldest(const struct quarantine *quarantine, size_t bytes_max, unsigned youngest)
{
    void *oldest;
    while ((oldest = take_out(quarantine->queue, bytes_max, youngest)) != NULL)
        end_waiting(quarantine, oldest);
}

void quarantine_release(const struct quarantine *quarantine, size_t bytes_max)
{
    end_oldest(quarantine, bytes_max, 0);
}

/* Skips turns whose blocks were pushed out by later ones, which may end in any order. */
static void pass(struct quarantine_queue *queue, uint64_t turn)
{
    uint64_t taken = ATOMIC_LOAD_RELAXED(&queue->taken);
    while (taken < turn &&
           !__atomic_compare_exchange_n(
               &queue->taken, &taken, turn, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
}

void quarantine_put(const struct quarantine *quarantine, void *freed)
{
    struct quarantine_queue *queue = quarantine->queue;
    uint64_t turn = ATOMIC_ADD_RELAXED(&queue->put, 1);
    ATOMIC_ADD_RELAXED(&queue->bytes, quarantine->bytes_of(freed));
    void *oldest =
        __atomic_exchange_n(&queue->slots[turn % QUARANTINE_SLOTS], freed, __ATOMIC_ACQ_REL);
    if (oldest) {
        /* In the first round a slot holds a block only if later turns have overtaken this one. */
        if (turn >= QUARANTINE_SLOTS)
            pass(queue, turn - QUARANTINE_SLOTS + 1);
        end_waiting(quarantine, oldest);
    }
    end_oldest(quarantine, quarantine->bytes_max, quarantine->youngest);
}

void quarantine_check(const struct quarantine *quarantine, void (*look)(const void *waiting))
{
    const struct quarantine_queue *queue = quarantine->queue;
    uint64_t waiting = 0;
    size_t bytes = 0;
    for (unsigned i = 0; i < QUARANTINE_SLOTS; i++) {
        const void *slot = queue->slots[i];
        if (!slot)
            continue;
        look(slot);
        waiting++;
        bytes += quarantine->bytes_of(slot);
    }
    ASSERT(bytes == queue->bytes);
    ASSERT(queue->taken <= queue->put && waiting <= queue->put - queue->taken);
    (void)waiting; /* only asserted on */
    (void)bytes;
}
