/* See hardened.h. */
#include "api/hardened.h"

#include <string.h>

#include "api/nothing.h"
#include "base/policy.h"
#include "base/sparse.h"
#include "map/metadata.h"
#include "os/fatal.h"
#include "os/os.h"
#include "slab/shard.h"
#include "thread/due.h"
#include "thread/idle.h"

/* Blocks of each thread that wait: in places that are picked at random, and then in a queue. */
enum { RANDOM_PLACES = 64, QUEUE_PLACES = 64 };

static const size_t waiting_max = 1 * MIB;

struct quarantine {
    uint64_t
        owner; /* identity: in a child of fork the blocks of lost threads stay where they are */
    size_t bytes;
    unsigned next; /* of the queue: the oldest */
    void *random[RANDOM_PLACES];
    void *queue[QUEUE_PLACES];
};

/* For the statistics no bytes are a block of the shortest class. */
enum { NOTHING_CLASS = 1 };

void hardened_start(void)
{
    struct heap *heap;
    if (!POLICY(hardened) || POLICY(fallback))
        return;
    /* Shards are counted with the first heap. */
    if ((heap = heap_enter()) == NULL)
        return;
    heap_leave(heap);
    if (!nothing_open() || !shard_prepare_hardened())
        return;
    idle_stay_parked(true);
    /* Parks this thread's. */
    if ((heap = heap_enter()) != NULL)
        heap_leave(heap);
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

/* Of larger blocks little may be touched: their memory goes back instead. */
static bool is_purged(const struct slab *slab)
{
    return size_class_is_large(slab->size_class);
}

static bool is_zero(const void *block, size_t size)
{
    const uint64_t *words = block;
    uint64_t a = 0, b = 0;
    /* Sizes are multiples of 16. */
    for (size_t i = 0; i < size / sizeof *words; i += 2) {
        a |= words[i];
        b |= words[i + 1];
    }
    return !(a | b);
}

static void check_zero(const struct slab *slab, const void *block, const char *call)
{
    if (!is_purged(slab) && UNLIKELY(!is_zero(block, size_classes[slab->size_class].size)))
        fatal_pointer(call, DEFECT_WRITTEN, block, NULL, 0);
}

static void clear(const struct slab *slab, void *block)
{
    size_t size = size_classes[slab->size_class].size;
    if (!is_purged(slab) || !os_purge(block, size))
        memset(block, 0, size);
}

void hardened_cut(void *block, size_t size, size_t usable)
{
    char *start = (char *)block + size;
    size_t ragged = size_min(round_up(size, sizeof(uint64_t)), usable) - size;
    memset(start, 0, ragged);
    sparse_clear(start + ragged, usable - size - ragged);
}

/* ---- The quarantine -------------------------------------------------------------------------- */

static void send_home(void *block)
{
    const struct slab *slab = slab_lookup(block);
    check_zero(slab, block, "free");
    /* Written since, in a block that nobody looks at. */
    if (is_purged(slab))
        clear(slab, block);
    if (size_class_is_long(slab->size_class))
        superslab_end_block(block);
    bin_flush(slab->shard, slab->size_class, &block, 1);
}

static size_t size_of(const void *block)
{
    return size_classes[slab_lookup(block)->size_class].size;
}

/* The thread's own; NULL: no memory for it, or it is in the middle of a change. */
static struct quarantine *quarantine_of(struct heap *heap)
{
    if (!heap || heap->depth != 1)
        return NULL;
    struct quarantine *quarantine = heap->quarantine;
    if (UNLIKELY(!quarantine))
        quarantine = heap->quarantine = metadata_alloc(sizeof *quarantine);
    if (quarantine && UNLIKELY(!identity_is_local(quarantine->owner))) {
        memset(quarantine, 0, sizeof *quarantine);
        quarantine->owner = identity_self();
    }
    return quarantine;
}

/* Takes the oldest block out of the queue, or what is in its place; sends it home. */
static void pass_on(struct quarantine *quarantine, void *follower)
{
    void **place = &quarantine->queue[quarantine->next++ % QUEUE_PLACES], *oldest = *place;
    *place = follower;
    if (oldest) {
        quarantine->bytes -= size_of(oldest);
        send_home(oldest);
    }
}

static void detain(struct heap *heap, struct quarantine *quarantine, void *block)
{
    void **place = &quarantine->random[due_random(&heap->random) % RANDOM_PLACES];
    void *follower = *place;
    *place = block;
    quarantine->bytes += size_of(block);
    if (follower)
        pass_on(quarantine, follower);
    for (unsigned i = 0; i < QUEUE_PLACES && quarantine->bytes > waiting_max; i++)
        pass_on(quarantine, NULL);
}

void hardened_flush(struct heap *heap)
{
    struct quarantine *quarantine = hardened_is_on() ? quarantine_of(heap) : NULL;
    for (unsigned i = 0; quarantine && i < RANDOM_PLACES; i++) {
        void *block = quarantine->random[i];
        quarantine->random[i] = NULL;
        if (block)
            pass_on(quarantine, block);
    }
    for (unsigned i = 0; quarantine && i < QUEUE_PLACES; i++)
        pass_on(quarantine, NULL);
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static void *take_block(unsigned size_class, size_t size, size_t alignment)
{
    unsigned shard = slab_hardened_shard, units = (unsigned)(alignment >> UNIT_SHIFT);
    void *block;
    if (!size_class) {
        size_class = size_class_single(size);
        block = bin_take_aligned(shard, size_class, units, false);
        return block ? block : bin_take_aligned(shard, size_class, units, true);
    }
    size_class = size_class_for_shard(size_class, shard);
    for (enum refill cost = REFILL_USED; cost <= REFILL_MAP; cost++)
        if (bin_refill(shard, size_class, &block, 1, cost))
            return block;
    return NULL;
}

void *hardened_take(struct heap *heap, unsigned size_class, size_t size, size_t alignment)
{
    void *block = take_block(size_class, size, alignment);
    if (!block)
        return NULL;
    struct slab *slab = slab_lookup(block);
    unsigned index = slab_index(slab, block, "malloc");
    check_zero(slab, block, "malloc");
    if (size_class_is_long(slab->size_class))
        superslab_sample_block(block);
    __atomic_fetch_or(slab_live(slab, index), (uint64_t)1 << index % 64, __ATOMIC_RELEASE);
    heap_count_take(heap, slab->size_class);
    return block;
}

void hardened_check(struct slab *slab, const void *block, const char *call)
{
    unsigned index = slab_index(slab, block, call);
    if (UNLIKELY(!(ATOMIC_LOAD_ACQUIRE(slab_live(slab, index)) >> index % 64 & 1)))
        fatal_pointer(call, DEFECT_DOUBLE_FREE, block, NULL, 0);
}

/* Of two threads that free the block, one finds that it is free. */
static void end_life(struct slab *slab, const void *block)
{
    unsigned index = slab_index(slab, block, "free");
    uint64_t bit = (uint64_t)1 << index % 64;
    if (UNLIKELY(!(__atomic_fetch_and(slab_live(slab, index), ~bit, __ATOMIC_ACQ_REL) & bit)))
        fatal_pointer("free", DEFECT_DOUBLE_FREE, block, NULL, 0);
}

static void count_free(struct heap *heap, unsigned shard, unsigned size_class)
{
    if (LIKELY(heap != NULL))
        heap_count_free(heap, size_class);
    else
        ATOMIC_ADD_RELAXED(&bin_of(shard, size_class)->direct_blocks, 1);
}

void hardened_free(struct heap *heap, struct slab *slab, void *block)
{
    end_life(slab, block);
    clear(slab, block);
    count_free(heap, slab->shard, slab->size_class);
    struct quarantine *quarantine = quarantine_of(heap);
    if (quarantine && !is_purged(slab))
        detain(heap, quarantine, block);
    else
        send_home(block);
}

void *hardened_take_nothing(struct heap *heap)
{
    void *nothing = nothing_take();
    if (LIKELY(nothing != NULL))
        heap_count_take(heap, NOTHING_CLASS);
    return nothing;
}

void hardened_free_nothing(struct heap *heap, void *nothing)
{
    nothing_free(nothing);
    count_free(heap, slab_hardened_shard, NOTHING_CLASS);
}
